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

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"heartbeat/internal/machine"
	"heartbeat/internal/machine/guardian"
)

// open creates the terminal. This process keeps the command's side open too: after all processes of
// the session have closed it, one may still open it again.
func (s *session) open() error {
	ptmx, tty, err := pty.Open()
	if err != nil {
		return fmt.Errorf("open a terminal for the command: %w: the system has no PTY to give (is /dev/ptmx there, and devpts mounted?)", err)
	}
	defer ptmx.Close()
	s.tty = tty
	if s.ptmx, err = pollable(ptmx); err == nil {
		s.caller.lend(tty)
		err = s.setSize()
	}
	if err != nil {
		_ = tty.Close() // nobody uses it
		return fmt.Errorf("set up a terminal for the command: %w", err)
	}
	return nil
}

// pollable returns the same terminal as a file that supports deadlines and whose reads block no
// thread. The PTY library makes its file blocking.
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
	guardian.Adopt()
	s.strangers = kin()
	s.crowded = len(s.strangers) > 0
	signal.Notify(s.children, syscall.SIGCHLD)
	s.joined.Add(1)
	over := func() {
		signal.Stop(s.children)
		s.joined.Done()
	}
	s.family.Leader, err = withDefaultSignals(func() (int, error) {
		return guardian.Start(path, s.Command, &syscall.ProcAttr{
			Dir: s.Dir, Env: s.Env, Files: []uintptr{s.tty.Fd(), s.tty.Fd(), s.tty.Fd()},
			Sys: &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 0}, // the command's controlling terminal
		}, func(pid int) {
			defer over()
			s.safely(func() { s.reap(pid) })
		})
	})
	if err == nil {
		return nil
	}
	over()
	why := guardian.WhyNot(err, s.Dir)
	if machine.Passes(why) {
		return fmt.Errorf("start %s: %w", s.Command[0], why)
	}
	return fmt.Errorf("%w: %s: %w", ErrCannotRun, s.Command[0], why)
}

// ignoredSignals are the signals that this process was started to ignore, such as SIGHUP by nohup.
// They are read once, because the first use of a signal here changes the answer.
var ignoredSignals = sync.OnceValue(func() (ignored []os.Signal) {
	for _, sig := range []syscall.Signal{syscall.SIGHUP, syscall.SIGINT} { // Go overrules the others itself
		if signal.Ignored(sig) {
			ignored = append(ignored, sig)
		}
	}
	return ignored
})

// withDefaultSignals calls start so that its process ignores none of ignoredSignals: it has its own
// terminal, whose keys and hangup are meant for it.
func withDefaultSignals(start func() (int, error)) (int, error) {
	ignored := ignoredSignals()
	if len(ignored) == 0 {
		return start()
	}
	caught := make(chan os.Signal, 1) // exec resets caught signals to their defaults
	signal.Notify(caught, ignored...)
	defer signal.Stop(caught) // ignores them again
	return start()
}

var (
	// ErrNotFound says that the command does not exist.
	ErrNotFound = errors.New("there is no such command")
	// ErrCannotRun says that the command exists but cannot be run.
	ErrCannotRun = errors.New("the command cannot be run")
)

// Find looks for the command as a shell in Options.Dir would. It returns the command's path, which
// may be relative to that, or the error that [Run] would return, as far as that is known without
// running it.
func Find(o Options) (path string, err error) {
	if err := enter(o.Dir); err != nil {
		return "", err
	}
	name := o.Command[0]
	if strings.Contains(name, "/") {
		return check(o.Dir, name)
	}
	denied := error(nil)
	for _, dir := range filepath.SplitList(Variable(o.Env, "PATH")) {
		path, err := check(o.Dir, filepath.Join(cmp.Or(dir, "."), name))
		switch {
		case err == nil && strings.Contains(path, "/"):
			return path, nil
		case err == nil:
			return "./" + path, nil
		case errors.Is(err, ErrCannotRun) && denied == nil:
			denied = err
		}
	}
	if denied != nil {
		return "", denied
	}
	return "", fmt.Errorf("%w: %s is in no directory of PATH", ErrNotFound, name)
}

func enter(dir string) error {
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

// check returns a path in dir, or an error if it is missing or not executable.
func check(dir, path string) (string, error) {
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

// Variable returns a variable's value, "" for none. The last one of that name counts.
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
