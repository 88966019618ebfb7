// Package layout fits the output of verbs to the terminal, with aligned columns, headers and texts
// wrapped between words. Widths are in terminal columns, not bytes. Pipes and files get nothing
// wrapped or cut, and lists as tab-separated lines.
package layout

import (
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/term"

	"heartbeat/internal/words"
)

const maxWidth = 120 // limits sentences on wide terminals: longer lines are hard to read

// Output is where a verb prints for people.
type Output struct {
	Palette
	Width int // the terminal's, in columns, or 0 without a terminal
	out   io.Writer
}

// For returns the Output that prints to out. mode is the value of --color.
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

// To returns a copy of the output that writes to w.
func (o Output) To(w io.Writer) Output {
	o.out = w
	return o
}

// Table prints the rows that were added to the table since the last call. A terminal gets aligned
// columns below their titles. With Width 0, a list is printed for programs: one row a line, without
// titles, with whole cells between tabs, empty cells included.
func (o Output) Table(t *Table) error {
	_, err := io.WriteString(o.out, t.flush(o.Width, o.Palette))
	return err
}

// ForPeople reports whether the output is shown at a terminal.
func (o Output) ForPeople() bool { return o.Width > 0 }

// Sentences returns a writer that cleans text for a terminal and wraps it between words. It returns w itself if w is no
// terminal. Each write must consist of whole lines, because an unfinished line cannot be wrapped here.
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

// Raw implements the interface that [words.Raw] looks for.
func (s sentences) Raw() io.Writer { return words.Raw(s.to) }

// Text prints the text in the style, cleaned of control sequences, wrapped between words, and ended with a newline.
func (o Output) Text(style Style, text string) error {
	lines := Wrap(words.Plain(strings.TrimRight(text, "\n")), min(o.Width, maxWidth))
	for i, line := range lines {
		lines[i] = o.Paint(style, line)
	}
	_, err := io.WriteString(o.out, strings.Join(lines, "\n")+"\n")
	return err
}

// When formats a time for a cell, empty if t is zero. People see the time's age. Programs and files
// get the time itself, because an age means nothing once it is stored.
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
	Always = "always" // colour in pipes and files too
	Never  = "never"
)

// Style is an ANSI colour or weight.
type Style string

// The styles use only the terminal's sixteen colours, which its owner has chosen to be readable.
const (
	Plain  Style = ""
	Bold   Style = "1"
	Red    Style = "31"
	Green  Style = "32"
	Yellow Style = "33"
)

// Palette paints text. The zero Palette leaves text as it is.
type Palette struct{ on bool }

// PaletteFor decides whether output to out is painted. In mode [Auto] or "" it is painted if out is
// a terminal, NO_COLOR is unset or empty (https://no-color.org) and TERM is not "dumb".
func PaletteFor(out io.Writer, mode string) Palette {
	switch mode {
	case Always:
		return Palette{on: true}
	case Never:
		return Palette{}
	}
	return Palette{on: Terminal(out) != nil && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"}
}

// Terminal returns the terminal that out writes to, or nil.
func Terminal(out io.Writer) *os.File {
	f, ok := words.Raw(out).(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return nil
	}
	return f
}

// Paint returns the text in the style. The text must already be clean: see [words.Plain].
func (p Palette) Paint(style Style, text string) string {
	if !p.on || style == Plain || text == "" {
		return text
	}
	return "\x1b[" + string(style) + "m" + text + "\x1b[m"
}
