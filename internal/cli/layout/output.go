// Package layout fits what the verbs print to the terminal: aligned columns with
// headers, and texts wrapped at words. Widths are counted in the terminal's
// columns, not in bytes. Into a pipe or a file nothing is wrapped or cut, and lists
// are lines of cells between tabs.
package layout

import (
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/term"

	"heartbeat/internal/words"
)

// maxWidth is the widest that sentences are set: longer lines are hard to read.
const maxWidth = 120

// Output is where a verb prints for people.
type Output struct {
	Palette
	// Width is the terminal's, in columns. It is 0 where there is no terminal.
	Width int
	out   io.Writer
}

// For returns the Output that prints to out; mode is the value of --color.
func For(out io.Writer, mode string) Output {
	o := Output{Palette: PaletteFor(out, mode), out: words.Raw(out)}
	if f := Terminal(out); f != nil {
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
	if Terminal(w) == nil {
		return w
	}
	return sentences{w}
}

type sentences struct{ to io.Writer }

func (s sentences) Write(b []byte) (int, error) {
	o := For(s.to, Never)
	if _, err := io.WriteString(o.out, strings.Join(Wrap(words.Plain(string(b)), min(o.Width, maxWidth)), "\n")); err != nil {
		return 0, err
	}
	return len(b), nil
}

// Raw is for [words.Raw].
func (s sentences) Raw() io.Writer { return words.Raw(s.to) }

// Text prints the text with the style, wrapped at words, and ends its last line.
// What a terminal would act on is taken out of it.
func (o Output) Text(style Style, text string) error {
	lines := Wrap(words.Plain(strings.TrimRight(text, "\n")), min(o.Width, maxWidth))
	for i, line := range lines {
		lines[i] = o.Paint(style, line)
	}
	_, err := io.WriteString(o.out, strings.Join(lines, "\n")+"\n")
	return err
}

// When is a time in a cell; it is empty where the time is not known. People see how long
// ago it was, programs and files get the time itself: an age means nothing once it is kept.
func (o Output) When(now, t time.Time) string {
	switch {
	case t.IsZero():
		return ""
	case o.ForPeople():
		return words.Ago(now, t)
	}
	return words.Stamp(t)
}

// Modes are the values of the flag --color.
const (
	Auto   = "auto"   // colour on a terminal only
	Always = "always" // also into a pipe or a file
	Never  = "never"
)

// Style is how a word stands out.
type Style string

// The styles use only the terminal's own sixteen colours, which its owner has
// chosen to be readable.
const (
	Plain  Style = ""
	Bold   Style = "1"
	Dim    Style = "2"
	Red    Style = "31"
	Green  Style = "32"
	Yellow Style = "33"
	Cyan   Style = "36"
)

// Palette paints, or leaves text as it is. The zero Palette does not paint.
type Palette struct{ on bool }

// PaletteFor decides whether what is written to out is painted. In mode [Auto], or in
// one that is empty, it is where out is a terminal, NO_COLOR is unset or empty
// (https://no-color.org) and TERM is not "dumb".
func PaletteFor(out io.Writer, mode string) Palette {
	switch mode {
	case Always:
		return Palette{on: true}
	case Never:
		return Palette{}
	}
	return Palette{on: Terminal(out) != nil && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"}
}

// Terminal is the terminal that out writes to, or nil.
func Terminal(out io.Writer) *os.File {
	f, ok := words.Raw(out).(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return nil
	}
	return f
}

// Paint returns the text in the style. The text must be clean: see [words.Plain].
func (p Palette) Paint(style Style, text string) string {
	if !p.on || style == Plain || text == "" {
		return text
	}
	return "\x1b[" + string(style) + "m" + text + "\x1b[m"
}
