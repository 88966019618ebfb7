package command

import (
	"io"

	"github.com/spf13/pflag"

	"heartbeat/internal/words"
)

// verbatim is for verbs that show a text in full.
type verbatim struct{ raw bool }

func (v *verbatim) addRaw(f *pflag.FlagSet) {
	f.BoolVar(&v.raw, "raw", false, "at a terminal, too, show a text byte for byte, with whatever it does to the terminal")
}

// fullText returns the writer for such a text. A pipe or a file gets every byte.
func (v *verbatim) fullText(out io.Writer) io.Writer {
	if v.raw {
		return words.Raw(out)
	}
	return out
}
