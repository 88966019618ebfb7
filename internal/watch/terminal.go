package watch

import (
	"errors"
	"io"
	"os"
	"sync"
	"syscall"
	"time"

	tea "charm.land/bubbletea/v2"
	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"heartbeat/internal/cli"
	"heartbeat/internal/machine/signals"
)

// terminal is the person's terminal. As a reader it notices the end of input, which the terminal library does not
// report.
type terminal struct {
	*os.File
	out     *os.File
	before  *term.State
	taken   *signals.Taken
	program *tea.Program
	over    chan struct{}
	ended   sync.Once
}

func openTerminal() (*terminal, error) {
	in, out := os.Stdin, os.Stdout
	switch {
	case !cli.IsTerminal(out) || !cli.IsTerminal(in):
		return nil, errors.New("a live view needs a terminal to show itself on and to read keys from: --once prints the view once")
	case os.Getenv("TERM") == "dumb":
		return nil, errors.New("TERM is dumb: such a terminal shows no live view, and --once prints the view once")
	}
	before, err := term.GetState(int(in.Fd()))
	if err != nil {
		return nil, err
	}
	return &terminal{File: in, out: out, before: before, taken: signals.Take(), over: make(chan struct{})}, nil
}

// Read tells the program when input ends.
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

// blocked is how long a terminal that takes no output may delay the end.
const blocked = 2 * time.Second

// guard ends the program in order when a signal comes. While the terminal takes no output, that would wait for it: then
// the terminal has its mode back, and this process ends.
func (t *terminal) guard(p *tea.Program) {
	t.program = p
	go func() {
		select {
		case <-t.over:
			return
		case <-t.taken.First():
		}
		go p.Quit()
		select {
		case <-t.over:
			return
		case <-t.taken.Second():
		case <-time.After(blocked):
		}
		_ = term.Restore(int(t.File.Fd()), t.before)
		sig, _ := t.taken.Signal()
		os.Exit(128 + int(sig))
	}()
}

// restore is called once the program has ended. It returns the signal that ended it.
func (t *terminal) restore() error {
	close(t.over)
	_ = term.Restore(int(t.File.Fd()), t.before)
	sig, _ := t.taken.Signal()
	t.taken.Stop()
	if sig != 0 {
		return cli.EndedBy{Signal: sig}
	}
	return nil
}

// orphaned reports whether no shell could continue this process after a stop. Then ^Z has no effect, as by default.
func orphaned() bool {
	own, err := unix.Getsid(0)
	parents, errParent := unix.Getsid(os.Getppid())
	return err != nil || errParent != nil || own != parents
}
