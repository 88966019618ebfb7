package layout

import (
	"io"
	"strings"

	"golang.org/x/term"

	"heartbeat/internal/cli/colour"
	"heartbeat/internal/words"
)

// maxWidth is the widest that sentences are set: longer lines are hard to read.
const maxWidth = 120

// Output is where a verb prints for people.
type Output struct {
	colour.Palette
	// Width is the terminal's, in columns. It is 0 where nothing limits it.
	Width int
	out   io.Writer
}

// For returns the Output that prints to out; mode is the value of --color.
func For(out io.Writer, mode string) Output {
	o := Output{Palette: colour.For(out, mode), out: words.Raw(out)}
	if f := colour.Terminal(out); f != nil {
		o.Width = 80
		if width, _, err := term.GetSize(int(f.Fd())); err == nil && width > 0 {
			o.Width = width
		}
	}
	return o
}

// Table prints the table.
func (o Output) Table(t *Table) error {
	_, err := io.WriteString(o.out, t.render(o.Width, o.Palette))
	return err
}

// Text prints the text with the style, wrapped at words, and ends its last line.
// What a terminal would act on is taken out of it.
func (o Output) Text(style colour.Style, text string) error {
	lines := Wrap(words.Plain(strings.TrimRight(text, "\n")), min(o.Width, maxWidth))
	for i, line := range lines {
		lines[i] = o.Paint(style, line)
	}
	_, err := io.WriteString(o.out, strings.Join(lines, "\n")+"\n")
	return err
}
