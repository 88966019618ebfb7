package cli

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"heartbeat/internal/words"
)

// Exit statuses of the commands. There is deliberately no 2: if a hook exits with it,
// Claude Code feeds its stderr to the model.
const (
	ExitOK           = 0
	ExitError        = 1
	ExitDeadLettered = 3   // the entry was set aside
	ExitTimedOut     = 124 // as in timeout(1)
)

// Streams are the standard streams of a command, or a test's replacements.
type Streams struct {
	// Command begins each sentence on Err: heartbeat-stop.
	Command  string
	In       *os.File
	Out, Err io.Writer
}

// StandardStreams returns the streams of the process.
func StandardStreams(command string) Streams {
	return Streams{Command: command, In: os.Stdin, Out: os.Stdout, Err: os.Stderr}
}

// OnScreen returns streams that are safe for a terminal: see [words.OnScreen].
func (s Streams) OnScreen() Streams {
	s.Out, s.Err = words.OnScreen(s.Out, IsTerminal), words.OnScreen(s.Err, IsTerminal)
	return s
}

// Show prints a text on Out, and returns the exit status.
func (s Streams) Show(text string) int {
	if _, err := io.WriteString(s.Out, text); err != nil {
		s.Complain(fmt.Errorf("print it: %w", err))
		return ExitError
	}
	return ExitOK
}

// Complain prints an error as a sentence.
func (s Streams) Complain(err error) { s.Note("%s", err.Error()) }

// Note prints a sentence on stderr.
func (s Streams) Note(format string, args ...any) {
	fmt.Fprintf(s.Err, "%s: %s\n", s.Command, words.Sentence(fmt.Sprintf(format, args...)))
}

// Warn notes the warnings of an operation.
func (s Streams) Warn(warnings []string) {
	for _, w := range warnings {
		s.Note("%s", w)
	}
}

// Text is what a person gives as text, in UTF-8 and without the byte order mark of UTF-8.
// Input that begins with the mark of UTF-16 or UTF-32, as of Windows' editors and shells, is
// converted.
func Text(in io.Reader) io.Reader {
	from := bufio.NewReader(in)
	first, _ := from.Peek(4) // what keeps it from being read is found when it is
	for _, wide := range []wide{
		{mark: "\xff\xfe\x00\x00", order: binary.LittleEndian}, {mark: "\x00\x00\xfe\xff", order: binary.BigEndian},
		{mark: "\xff\xfe", order: binary.LittleEndian}, {mark: "\xfe\xff", order: binary.BigEndian},
	} {
		if strings.HasPrefix(string(first), wide.mark) {
			wide.from = from
			_, _ = from.Discard(len(wide.mark)) // it was seen
			return &wide
		}
	}
	if strings.HasPrefix(string(first), "\ufeff") {
		_, _ = from.Discard(len("\ufeff"))
	}
	return from
}

// TextOf is [Text] for input that was read.
func TextOf(b []byte, err error) ([]byte, error) {
	if err != nil {
		return nil, err
	}
	return io.ReadAll(Text(bytes.NewReader(b)))
}

// wide reads text of units that are as long as half of a mark of UTF-32, or one of UTF-16.
type wide struct {
	from  *bufio.Reader
	mark  string
	order binary.ByteOrder
	ready []byte
}

// Read implements [io.Reader].
func (w *wide) Read(b []byte) (int, error) {
	for len(w.ready) < len(b) {
		r, err := w.rune()
		if err == io.EOF && len(w.ready) > 0 {
			break
		}
		if err != nil {
			return 0, err
		}
		w.ready = utf8.AppendRune(w.ready, r)
	}
	n := copy(b, w.ready)
	w.ready = w.ready[n:]
	return n, nil
}

func (w *wide) rune() (rune, error) {
	r, err := w.unit()
	if err == nil && utf16.IsSurrogate(r) && len(w.mark) == 2 {
		second, _ := w.unit() // none is no second one
		if pair := utf16.DecodeRune(r, second); pair != utf8.RuneError {
			return pair, nil
		}
	}
	if err == io.ErrUnexpectedEOF || err == nil && !utf8.ValidRune(r) {
		err = fmt.Errorf("the input begins as UTF-%d, and goes on otherwise: save it as UTF-8", 8*len(w.mark))
	}
	return r, err
}

func (w *wide) unit() (rune, error) {
	var b [4]byte
	if _, err := io.ReadFull(w.from, b[:len(w.mark)]); err != nil {
		return 0, err
	}
	if len(w.mark) == 2 {
		return rune(w.order.Uint16(b[:])), nil
	}
	return rune(w.order.Uint32(b[:])), nil
}

// IsTerminal reports whether the file is a terminal.
func IsTerminal(f *os.File) bool {
	_, err := unix.IoctlGetTermios(int(f.Fd()), termiosRequest)
	return err == nil
}
