package colour

import (
	"io"
	"os"

	"golang.org/x/term"

	"heartbeat/internal/words"
)

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

// For decides whether what is written to out is painted. In mode [Auto], or in
// one that is empty, it is where out is a terminal, NO_COLOR is unset or empty
// (https://no-color.org) and TERM is not "dumb".
func For(out io.Writer, mode string) Palette {
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
