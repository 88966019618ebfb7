package watching

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"sync"
	"syscall"
	"time"

	tea "charm.land/bubbletea/v2"
	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"heartbeat/internal/cli"
	"heartbeat/internal/host/signals"
	"heartbeat/internal/watching/page"
)

// terminal is the one that a person sits at. As a reader it notices the end of its
// input, which the terminal library does not tell.
type terminal struct {
	*os.File
	out     *os.File
	before  *term.State
	taken   *signals.Taken
	program *tea.Program
	stops   chan os.Signal
	over    chan struct{}
	ended   sync.Once
}

// openTerminal takes the terminal that the streams are.
func openTerminal(s cli.Streams) (*terminal, error) {
	out, ok := s.Out.(*os.File)
	switch {
	case !ok || !term.IsTerminal(int(out.Fd())) || !term.IsTerminal(int(s.In.Fd())):
		return nil, errors.New("a live view needs a terminal to show itself on and to read keys from: --once prints the view once")
	case os.Getenv("TERM") == "dumb":
		return nil, errors.New("TERM is dumb: such a terminal shows no live view, and --once prints the view once")
	}
	before, err := term.GetState(int(s.In.Fd()))
	if err != nil {
		return nil, err
	}
	return &terminal{File: s.In, out: out, before: before, taken: signals.Take(), stops: make(chan os.Signal, 1), over: make(chan struct{})}, nil
}

// Read tells the program when there is no more input.
func (t *terminal) Read(b []byte) (int, error) {
	n, err := t.File.Read(b)
	if err == nil && n == 0 {
		err = io.EOF
	}
	if err != nil && !errors.Is(err, syscall.EAGAIN) && !errors.Is(err, syscall.EINTR) {
		t.ended.Do(func() { go t.program.Send(inputEnded{}) })
		return n, io.EOF
	}
	return n, err
}

// blocked is how long a terminal that takes no output may hold up the end.
const blocked = 2 * time.Second

// guard ends the program in order when a signal comes, and stops it in order.
func (t *terminal) guard(p *tea.Program) {
	t.program = p
	signal.Notify(t.stops, syscall.SIGTSTP)
	go func() {
		for {
			select {
			case <-t.over:
				return
			case <-t.stops:
				t.stop()
			case <-t.taken.First():
				t.leave()
				return
			}
		}
	}()
}

// stop gives the terminal back, stops the program as the signal's default does, and
// takes the terminal again once it is continued. In a process group that no shell looks
// after it has no effect, as by default. The stop is by another signal: the runtime
// swallows one that it was asked to report.
func (t *terminal) stop() {
	if orphaned() || t.program.ReleaseTerminal() != nil {
		return
	}
	continued := make(chan os.Signal, 1)
	signal.Notify(continued, syscall.SIGCONT)
	defer signal.Stop(continued)
	_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
	<-continued                     // this thread may run on for a moment
	_ = t.program.RestoreTerminal() // a terminal that is gone says so at the next read
}

// stopSelf is what ^Z does at a terminal that is not raw.
func stopSelf() { _ = syscall.Kill(os.Getpid(), syscall.SIGTSTP) }

// leave ends the program, also while the terminal takes no output.
func (t *terminal) leave() {
	go t.program.Quit()
	select {
	case <-t.over:
	case <-t.taken.Second():
		t.force()
	case <-time.After(blocked):
		t.force()
	}
}

// force restores what can be restored without waiting for the terminal, and exits.
func (t *terminal) force() {
	dropOutput(int(t.out.Fd())) // what waits there was for our screen
	_ = term.Restore(int(t.File.Fd()), t.before)
	gone := make(chan struct{})
	go func() {
		_, _ = io.WriteString(t.out, leaveScreen)
		close(gone)
	}()
	select {
	case <-gone:
	case <-time.After(blocked / 4):
	}
	sig, _ := t.taken.Signal()
	os.Exit(128 + int(sig))
}

// leaveScreen shows the cursor, and the screen as it was before.
const leaveScreen = "\x1b[?2026l\x1b[>4m\x1b[<u\x1b[?1049l\x1b[?25h\x1b[m\r\n"

// panicked is deferred in goroutines of ours: the terminal library catches panics in
// its own.
func (t *terminal) panicked() {
	p := recover()
	if p == nil {
		return
	}
	stack := debug.Stack()
	t.program.Kill()
	_ = term.Restore(int(t.File.Fd()), t.before)
	fmt.Fprintf(os.Stderr, "%s: internal error: %v: please report it with this:\n%s", page.CommandName, p, stack)
	os.Exit(cli.ExitError)
}

// restore is called once the program has ended. It returns the signal that ended it.
func (t *terminal) restore() error {
	close(t.over)
	signal.Stop(t.stops)
	_ = term.Restore(int(t.File.Fd()), t.before)
	sig, _ := t.taken.Signal()
	t.taken.Stop()
	if sig != 0 {
		return cli.EndedBy{Signal: sig}
	}
	return nil
}

// orphaned reports whether no shell could continue this process if it stopped.
func orphaned() bool {
	own, err := unix.Getsid(0)
	parents, errParent := unix.Getsid(os.Getppid())
	return err != nil || errParent != nil || own != parents
}
