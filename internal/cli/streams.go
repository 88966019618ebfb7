package cli

import (
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"heartbeat/internal/words"
)

// Exit statuses of the commands. There is no 2 among them, on purpose: Claude Code
// feeds stderr to the model when a hook exits with it.
const (
	ExitOK           = 0
	ExitError        = 1
	ExitDeadLettered = 3   // the entry was set aside
	ExitTimedOut     = 124 // as timeout(1) has it
)

// Streams are the standard streams of a command, or a test's.
type Streams struct {
	// Command begins each sentence on Err: heartbeat-stop.
	Command  string
	In       *os.File
	Out, Err io.Writer
}

// StandardStreams are those of the process.
func StandardStreams(command string) Streams {
	return Streams{Command: command, In: os.Stdin, Out: os.Stdout, Err: os.Stderr}
}

// OnScreen cleans what goes to a terminal of whatever could disturb it.
func (s Streams) OnScreen() Streams {
	s.Out, s.Err = words.OnScreen(s.Out, IsTerminal), words.OnScreen(s.Err, IsTerminal)
	return s
}

// Show prints a text on Out, and tells the exit status.
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

// Warn notes what was found and mended besides.
func (s Streams) Warn(warnings []string) {
	for _, w := range warnings {
		s.Note("%s", w)
	}
}

// IsTerminal reports whether a person sits at the other end of the file.
func IsTerminal(f *os.File) bool {
	_, err := unix.IoctlGetTermios(int(f.Fd()), termiosRequest)
	return err == nil
}
