package program

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/pflag"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/encoding/unicode/utf32"
	"golang.org/x/text/transform"

	"heartbeat/internal/cli"
	"heartbeat/internal/cli/layout"
	"heartbeat/internal/disk"
	"heartbeat/internal/words"
)

// ReadText is the text that the arguments of a verb name: the one argument, the file, or
// stdin, of at most so many bytes.
func ReadText(args []string, file string, most int64, s cli.Streams) (string, error) {
	switch {
	case len(args) > 1:
		return "", cli.Usage(fmt.Errorf("%d texts: quote the text, or send it on stdin", len(args)))
	case len(args) == 1 && file != "":
		return "", cli.Usage(errors.New("both a TEXT and --file: one of them is enough"))
	case len(args) == 1 && args[0] != "-":
		return args[0], nil
	case file != "":
		b, err := InUTF8(disk.ReadGiven(file, most))
		return string(b), err
	case len(args) == 0 && cli.IsTerminal(s.In):
		return "", cli.Usage(errors.New("no text: give it as TEXT, with --file, or on stdin"))
	}
	b, err := InUTF8(io.ReadAll(io.LimitReader(s.In, most+1)))
	if err != nil {
		return "", fmt.Errorf("read stdin: %w", err)
	}
	if int64(len(b)) > most {
		return "", fmt.Errorf("stdin has more than %d bytes (%s), which is the most that an entry has: put the text into a file and send its name", most, words.Size(most))
	}
	return strings.TrimSuffix(string(b), "\n"), nil
}

// Metadata is what --meta says. The names in reserved, with blanks around them, are taken.
func Metadata(given []string, reserved string) (map[string]any, error) {
	all := make(map[string]any, len(given))
	for _, kv := range given {
		key, value, found := strings.Cut(kv, "=")
		switch {
		case !found || key == "":
			return nil, cli.Usage(fmt.Errorf("--meta %q: it takes key=value", kv))
		case strings.Contains(reserved, " "+key+" "):
			return nil, cli.Usage(fmt.Errorf("--meta %q: the name %q is taken", kv, key))
		}
		all[key] = value
	}
	return all, nil
}

// Agreed asks a person. No answer means no.
func Agreed(question string, s cli.Streams) bool {
	fmt.Fprintf(s.Err, "%s [y/N] ", question)
	answer, err := bufio.NewReader(s.In).ReadString('\n')
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return err == nil
	}
	return false
}

// UTF8 is the input in UTF-8, without a byte order mark. Input that begins with the mark of
// UTF-16 or UTF-32, as of Windows' editors and shells, is converted; what is no such thing in
// it becomes U+FFFD. Input without a mark stays as it is.
func UTF8(in io.Reader) io.Reader {
	from := bufio.NewReader(in)
	first, _ := from.Peek(4) // what keeps it from being read is found when it is
	switch string(first) {
	case "\xff\xfe\x00\x00", "\x00\x00\xfe\xff": // to BOMOverride the first one is UTF-16
		return utf32.UTF32(utf32.BigEndian, utf32.ExpectBOM).NewDecoder().Reader(from)
	}
	return transform.NewReader(from, unicode.BOMOverride(encoding.Nop.NewDecoder()))
}

// InUTF8 is [UTF8] for input that was read.
func InUTF8(b []byte, err error) ([]byte, error) {
	if err != nil {
		return nil, err
	}
	return io.ReadAll(UTF8(bytes.NewReader(b)))
}

// AddColor declares --color.
func AddColor(f *pflag.FlagSet, value *string) {
	*value = layout.Auto
	f.Var(cli.Choice(value, layout.Auto, layout.Always, layout.Never), "color", "colour: auto (on a terminal, without NO_COLOR), always or never")
}

// Verbatim is for verbs that show a text in full.
type Verbatim struct{ Raw bool }

// AddRaw declares --raw.
func (v *Verbatim) AddRaw(f *pflag.FlagSet) {
	f.BoolVar(&v.Raw, "raw", false, "at a terminal, too, show a text byte for byte, with whatever it does to the terminal")
}

// FullText returns the writer for such a text. A pipe or a file gets every byte.
func (v *Verbatim) FullText(out io.Writer) io.Writer {
	if v.Raw {
		return words.Raw(out)
	}
	return out
}

// Say prints a sentence, wrapped at a terminal's width.
func Say(s cli.Streams, sentence string) error {
	return layout.For(s.Out, layout.Never).Text(layout.Plain, sentence)
}

// Report prints v as JSON, or else the sentence.
func Report(s cli.Streams, asJSON bool, v any, sentence string) error {
	if asJSON {
		return cli.PrintJSON(s.Out, v)
	}
	return Say(s, sentence)
}
