package terminal

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"heartbeat/internal/machine"
	"heartbeat/internal/machine/guardian"
)

// open creates the terminal. This process keeps the command's side open too: a process of the session may open
// it again after all of them have closed it.
func (s *session) open() error {
	ptmx, tty, err := pty.Open()
	if err != nil {
		return fmt.Errorf("open a terminal for the command: %w: the system has no PTY to give (is /dev/ptmx there, and devpts mounted?)", err)
	}
	defer ptmx.Close()
	s.tty = tty
	if s.ptmx, err = pollable(ptmx); err == nil {
		s.caller.copySettings(tty)
		err = s.setSize()
	}
	if err != nil {
		_ = tty.Close() // nobody uses it
		return fmt.Errorf("set up a terminal for the command: %w", err)
	}
	return nil
}

// pollable returns the same terminal as a file that supports deadlines and whose reads block no
// thread: the PTY library makes its file blocking.
func pollable(f *os.File) (*os.File, error) {
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	if err := unix.SetNonblock(fd, true); err != nil {
		_ = unix.Close(fd) // nobody uses it
		return nil, err
	}
	return os.NewFile(uintptr(fd), f.Name()), nil
}

func (s *session) start(path string) (err error) {
	withDefaultSignals(func() {
		s.family, err = guardian.Start(path, s.Command, &syscall.ProcAttr{
			Dir: s.Dir, Env: s.Env, Files: []uintptr{s.tty.Fd(), s.tty.Fd(), s.tty.Fd()},
			Sys: &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 0}, // the command's controlling terminal
		}, s.Grace, s.Guardian)
	})
	if err == nil {
		return nil
	}
	why := guardian.WhyNot(err, s.Dir)
	if machine.Passes(why) {
		return fmt.Errorf("start %s: %w", s.Command[0], why)
	}
	return fmt.Errorf("%w: %s: %w", ErrCannotRun, s.Command[0], why)
}

// ignoredSignals returns the signals that this process was started to ignore, such as SIGHUP by nohup.
// It asks only once, because the first use of a signal here changes the answer.
var ignoredSignals = sync.OnceValue(func() (ignored []os.Signal) {
	for _, sig := range []syscall.Signal{syscall.SIGHUP, syscall.SIGINT} { // Go overrules the others itself
		if signal.Ignored(sig) {
			ignored = append(ignored, sig)
		}
	}
	return ignored
})

// withDefaultSignals calls start so that the process it starts ignores none of ignoredSignals: that process
// has its own terminal, whose keys and hangup are meant for it.
func withDefaultSignals(start func()) {
	if ignored := ignoredSignals(); len(ignored) > 0 {
		caught := make(chan os.Signal, 1) // exec resets caught signals to their defaults
		signal.Notify(caught, ignored...)
		defer signal.Stop(caught) // ignores them again
	}
	start()
}

var (
	// ErrNotFound says that the command does not exist.
	ErrNotFound = errors.New("there is no such command")
	// ErrCannotRun says that the command exists but cannot be run.
	ErrCannotRun = errors.New("the command cannot be run")
)

// Find finds the command as a shell in Options.Dir would. It returns the command's path, which may be relative to Dir,
// or the error that [Run] would return, as far as that is known without running the command.
func Find(o Options) (path string, err error) {
	if err := checkDir(o.Dir); err != nil {
		return "", err
	}
	name := o.Command[0]
	if strings.Contains(name, "/") {
		return checkProgram(o.Dir, name)
	}
	denied := fmt.Errorf("%w: %s is in no directory of PATH", ErrNotFound, name)
	for _, dir := range filepath.SplitList(Variable(o.Env, "PATH")) {
		path, err := checkProgram(o.Dir, filepath.Join(cmp.Or(dir, "."), name))
		switch {
		case err == nil && strings.Contains(path, "/"):
			return path, nil
		case err == nil:
			return "./" + path, nil
		case errors.Is(err, ErrCannotRun) && errors.Is(denied, ErrNotFound):
			denied = err
		}
	}
	return "", denied
}

// checkDir returns an error if no process can work in dir.
func checkDir(dir string) error {
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return fmt.Errorf("working directory %s: it does not exist: make it, or name another one with --cwd", dir)
	case err != nil:
		return fmt.Errorf("working directory: %w", err)
	case !info.IsDir():
		return fmt.Errorf("working directory %s: it is not a directory", dir)
	}
	if err := unix.Access(dir, unix.X_OK); err != nil {
		return fmt.Errorf("working directory %s: %w: its rights do not let you in", dir, err)
	}
	return nil
}

// checkProgram returns path, which may be relative to dir, or an error if no executable file is there.
func checkProgram(dir, path string) (string, error) {
	file := path
	if !filepath.IsAbs(path) {
		file = filepath.Join(dir, path)
	}
	info, err := os.Stat(file)
	switch {
	case errors.Is(err, os.ErrNotExist), errors.Is(err, unix.ENOTDIR):
		return "", fmt.Errorf("%w: %s is not there", ErrNotFound, path)
	case err != nil:
		return "", fmt.Errorf("%w: %w", ErrCannotRun, err)
	case info.IsDir():
		return "", fmt.Errorf("%w: %s is a directory", ErrCannotRun, path)
	case unix.Access(file, unix.X_OK) != nil:
		return "", fmt.Errorf("%w: %s is not executable for you (chmod +x?)", ErrCannotRun, path)
	}
	return path, nil
}

// Variable returns the value of the last variable of that name, "" for none.
func Variable(env []string, name string) string {
	for _, kv := range slices.Backward(env) {
		if value, found := strings.CutPrefix(kv, name+"="); found {
			return value
		}
	}
	return ""
}

// SetVariable sets a variable, as NAME=value, in an environment that the caller owns.
func SetVariable(env []string, kv string) []string {
	name, _, _ := strings.Cut(kv, "=")
	env = slices.DeleteFunc(env, func(old string) bool { return strings.HasPrefix(old, name+"=") })
	return append(env, kv)
}

// guardAfter is how long a command runs before its guardian is started, so that the guardian delays
// no start and costs short commands nothing.
const guardAfter = 5 * time.Millisecond

// mark puts a unique mark into the environment of the whole session.
func (s *session) mark() (err error) {
	if s.Guardian != 0 || !guardian.Adopts {
		return nil
	}
	if s.marked, err = machine.RandomName(); err == nil {
		s.Env = guardian.Marked(s.Env, s.marked)
	}
	return err
}

// postGuardian starts the guardian.
func (s *session) postGuardian() {
	found := s.caller.found
	if found == nil && s.hasConsole() { // nobody types there
		found, _ = guardian.TerminalOf(s.Console.to) // if it fails, nobody undoes its modes after a kill
	}
	g, err := s.family.Guard(s.marked, found, s.Then)
	if err != nil {
		s.Note("%v: if this process is killed, what ignores a hangup or has left the terminal lives on", err)
		return
	}
	s.guard = g
	if s.hasConsole() {
		s.Console.follow(g.Undo)
	}
}
