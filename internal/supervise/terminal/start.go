package terminal

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"sync"
	"syscall"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"heartbeat/internal/machine"
	"heartbeat/internal/machine/guardian"
)

// open creates the terminal. This process keeps the command's side open too: if all
// processes of the session close it, one may still open it again.
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

// pollable returns the same terminal as a file that supports deadlines and whose
// reads block no thread. The PTY library sets its file to blocking.
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

// start starts the command from a thread that lives as long as the session: with
// Pdeathsig, the kernel kills the command when the thread that started it ends.
func (s *session) start(path string) error {
	s.strangers = adopt()
	s.crowded = len(s.strangers) > 0
	started := make(chan error)
	signal.Notify(s.children, syscall.SIGCHLD)
	s.join(func() {
		defer signal.Stop(s.children)
		runtime.LockOSThread() // never unlocked, so that the thread ends with this goroutine
		// The terminal is the command's controlling one.
		attributes := guardian.DiesWithParent(&syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 0})
		pid, err := withDefaultSignals(func() (int, error) {
			return syscall.ForkExec(path, s.Command, &syscall.ProcAttr{
				Dir: s.Dir, Env: s.Env, Files: []uintptr{s.tty.Fd(), s.tty.Fd(), s.tty.Fd()}, Sys: attributes,
			})
		})
		s.leader = pid
		started <- err
		if err == nil {
			s.reap(pid)
		}
	})
	if err := <-started; err != nil {
		return cannotRun(s.Command[0], err)
	}
	return nil
}

// cannotRun words the kernel's error about a command that exists.
func cannotRun(name string, err error) error {
	why := err.Error()
	switch {
	case errors.Is(err, unix.ENOEXEC):
		why = "it is neither a program of this system nor a script with #! in its first line"
	case errors.Is(err, unix.ENOENT):
		why = "what would run it, as its first line or its loader has it, is not there"
	case machine.Passes(err):
		return fmt.Errorf("start %s: %w: the system has no room for it now", name, err)
	}
	return fmt.Errorf("%w: %s: %s", ErrCannotRun, name, why)
}

// ignoredSignals are those that whoever started this process ignores, as nohup does
// with SIGHUP. It is asked once, since the answer does not outlast the first use of
// the signal here.
var ignoredSignals = sync.OnceValue(func() (ignored []os.Signal) {
	for _, sig := range []syscall.Signal{syscall.SIGHUP, syscall.SIGINT} { // Go overrules the others itself
		if signal.Ignored(sig) {
			ignored = append(ignored, sig)
		}
	}
	return ignored
})

// withDefaultSignals calls start, whose process ignores no signal that this one was
// told to ignore: it has a terminal of its own, whose keys and hangup are meant for it.
func withDefaultSignals(start func() (int, error)) (int, error) {
	ignored := ignoredSignals()
	if len(ignored) == 0 {
		return start()
	}
	caught := make(chan os.Signal, 1) // a signal that is caught has its default effect behind exec
	signal.Notify(caught, ignored...)
	defer signal.Stop(caught) // which ignores it again
	return start()
}
