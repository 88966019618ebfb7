package cli

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"

	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"heartbeat/internal/words"
)

// Exit statuses of the commands, without 2: Claude Code feeds the stderr of a hook that exits with 2 to the model.
const (
	ExitOK           = 0
	ExitError        = 1
	ExitDeadLettered = 3   // the entry was set aside
	ExitLater        = 75  // EX_TEMPFAIL of sysexits(3): the cause passes by itself
	ExitPerson       = 78  // EX_CONFIG: a person must act first
	ExitTimedOut     = 124 // as in timeout(1)
)

// Streams are the standard streams of a command, or a test's replacements.
type Streams struct {
	Command  string // begins each sentence on Err
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

// Print writes a text to Out.
func (s Streams) Print(text string) error {
	if _, err := io.WriteString(s.Out, text); err != nil {
		return fmt.Errorf("print it: %w", err)
	}
	return nil
}

// Show prints a text and returns the exit status.
func (s Streams) Show(text string) int {
	if err := s.Print(text); err != nil {
		s.Complain(err)
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

// Caught is deferred by whatever runs a command. It reports a panic and sets the exit status.
func (s Streams) Caught(status *int) {
	if p := recover(); p != nil {
		fmt.Fprintf(s.Err, "%s: internal error: %v: please report it with this:\n%s", s.Command, p, debug.Stack())
		*status = ExitError
	}
}

// Warn prints the warnings of an operation.
func (s Streams) Warn(warnings []string) {
	for _, w := range warnings {
		s.Note("%s", w)
	}
}

// ReaderGone returns an error if Out is a pipe or a socket that nobody reads any more, which ends a verb as its next
// write would. That is so with `heartbeat log --follow | head`.
func (s Streams) ReaderGone() error {
	if f, ok := words.Raw(s.Out).(*os.File); ok {
		polled := []unix.PollFd{{Fd: int32(f.Fd())}}
		if n, err := unix.Poll(polled, 0); n > 0 && err == nil && polled[0].Revents&(unix.POLLERR|unix.POLLHUP) != 0 {
			return Silent(EndedBy{unix.SIGPIPE}.Status())
		}
	}
	return nil
}

// IsTerminal reports whether the file is a terminal.
func IsTerminal(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }

// Build describes how the running command was built.
type Build struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Modified bool   `json:"modified,omitempty"`
	Time     string `json:"time,omitempty"`
	Go       string `json:"go"`
	Static   bool   `json:"static"` // built without cgo, which starts faster
}

// ReadBuild reads the build information of the running command.
func ReadBuild() Build {
	b := Build{Version: cmp.Or(version, "(devel)"), Go: runtime.Version()}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	if version == "" && info.Main.Version != "" {
		b.Version = info.Main.Version
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Revision = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		case "vcs.time":
			b.Time = s.Value
		case "CGO_ENABLED":
			b.Static = s.Value == "0"
		}
	}
	return b
}

// VersionLine returns the output of --version.
func VersionLine(command string) string {
	b := ReadBuild()
	line := command + " " + b.Version
	if b.Revision != "" {
		line += " " + b.Revision[:min(12, len(b.Revision))]
		if b.Modified {
			line += "+changes"
		}
	}
	return fmt.Sprintf("%s (%s, %s/%s)", line, b.Go, runtime.GOOS, runtime.GOARCH)
}

// version is set with the linker's -X when a release is built: without a tag in its own repository
// the module has no version that the Go command could record.
var version string
