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
	// Width is the terminal's, in columns. It is 0 where there is no terminal.
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

// To is the same output, written to w instead.
func (o Output) To(w io.Writer) Output {
	o.out = w
	return o
}

// Table prints the rows that were added to the table since it was printed last.
// At a terminal its columns are aligned, below their titles. Where Width is 0 a
// list is for programs: a row a line, without titles, its cells whole and between
// tabs, empty ones among them.
func (o Output) Table(t *Table) error {
	_, err := io.WriteString(o.out, t.take(o.Width, o.Palette))
	return err
}

// ForPeople reports whether the output is shown at a terminal.
func (o Output) ForPeople() bool { return o.Width > 0 }

// Sentences returns a writer that wraps what is written to a terminal at words, and
// cleans it; w itself if it is no terminal. Each write must be of whole lines, or
// else the line it begins is wrapped by the terminal.
func Sentences(w io.Writer) io.Writer {
	if colour.Terminal(w) == nil {
		return w
	}
	return sentences{w}
}

type sentences struct{ to io.Writer }

func (s sentences) Write(b []byte) (int, error) {
	o := For(s.to, colour.Never)
	if _, err := io.WriteString(o.out, strings.Join(Wrap(words.Plain(string(b)), min(o.Width, maxWidth)), "\n")); err != nil {
		return 0, err
	}
	return len(b), nil
}

// Raw is for [words.Raw].
func (s sentences) Raw() io.Writer { return words.Raw(s.to) }

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
