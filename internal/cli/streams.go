package cli

import (
	"fmt"
	"io"
	"os"

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

// IsTerminal reports whether the file is a terminal.
func IsTerminal(f *os.File) bool {
	_, err := unix.IoctlGetTermios(int(f.Fd()), termiosRequest)
	return err == nil
}
