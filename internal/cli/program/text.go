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

// ReadText returns a verb's text of at most the given number of bytes: its one argument, the file, or stdin.
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

// Metadata parses --meta. reserved lists the names that are taken, each between blanks.
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

// Agreed asks a yes-or-no question. No answer means no.
func Agreed(question string, s cli.Streams) bool {
	fmt.Fprintf(s.Err, "%s [y/N] ", question)
	answer, err := bufio.NewReader(s.In).ReadString('\n')
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return err == nil
	}
	return false
}

// UTF8 converts input that begins with a UTF-16 or UTF-32 byte order mark, as Windows editors and shells write it.
// Invalid sequences become U+FFFD and the mark is dropped. Input without a mark stays unchanged.
func UTF8(in io.Reader) io.Reader {
	from := bufio.NewReader(in)
	first, _ := from.Peek(4) // the next read reports the error
	switch string(first) {
	case "\xff\xfe\x00\x00", "\x00\x00\xfe\xff": // BOMOverride would take the first of them for UTF-16
		return utf32.UTF32(utf32.BigEndian, utf32.ExpectBOM).NewDecoder().Reader(from)
	}
	return transform.NewReader(from, unicode.BOMOverride(encoding.Nop.NewDecoder()))
}

// InUTF8 is [UTF8] for input that is already read.
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

// FullText returns the writer for such a text: a pipe, a file or --raw gets every byte.
func (v *Verbatim) FullText(out io.Writer) io.Writer {
	if v.Raw {
		return words.Raw(out)
	}
	return out
}

// Say prints a sentence, wrapped to the terminal's width.
func Say(s cli.Streams, sentence string) error {
	return layout.For(s.Out, layout.Never).Text(layout.Plain, sentence)
}

// Report prints v as JSON if asked to, and the sentence otherwise.
func Report(s cli.Streams, asJSON bool, v any, sentence string) error {
	if asJSON {
		return cli.PrintJSON(s.Out, v)
	}
	return Say(s, sentence)
}
