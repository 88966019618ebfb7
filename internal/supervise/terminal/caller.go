package terminal

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/creack/pty"
	"github.com/muesli/cancelreader"
	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"heartbeat/internal/machine/guardian"
)

// caller is the terminal that this process was started from, if any.
type caller struct {
	typing *os.File // stdin, if it is a terminal whose keys go to the command
	sized  *os.File // the first of stdin, stdout and stderr with a size to follow
	state  *term.State
	found  *guardian.Terminal // its first state, for the guardian
}

func findCaller(stdin, stdout, stderr *os.File) (c caller) {
	for _, f := range []*os.File{stdin, stdout, stderr} {
		if c.sized == nil && term.IsTerminal(int(f.Fd())) {
			c.sized = f
		}
	}
	if c.sized == stdin && stdin != nil && inForeground(stdin) {
		c.typing = stdin
	}
	return c
}

// inForeground reports whether this process may read the terminal: the system stops a background
// process that does. Any process may read a terminal other than its controlling one.
func inForeground(f *os.File) bool {
	group, err := unix.IoctlGetInt(int(f.Fd()), unix.TIOCGPGRP)
	return err != nil || group == unix.Getpgrp()
}

// makeRaw makes every key arrive as it is typed.
func (c *caller) makeRaw() error {
	if c.typing == nil {
		return nil
	}
	if c.found == nil {
		c.found, _ = guardian.TerminalOf(c.typing) // if it fails, nobody restores the terminal after a SIGKILL
	}
	state, err := term.MakeRaw(int(c.typing.Fd()))
	if err != nil {
		return fmt.Errorf("pass the keys on: %w: the terminal on stdin cannot be set to raw (use </dev/null to go without it)", err)
	}
	if c.state == nil {
		c.state = state
	}
	return nil
}

// Forget drops unread input of a terminal: nobody knows whom it was for.
func Forget(f *os.File) {
	if term.IsTerminal(int(f.Fd())) && inForeground(f) {
		forget(int(f.Fd()))
	}
}

// copySettings copies the caller's terminal settings to the command's terminal.
func (c *caller) copySettings(tty *os.File) {
	if c.typing == nil {
		return
	}
	if settings, err := unix.IoctlGetTermios(int(c.typing.Fd()), getTermios); err == nil {
		_ = unix.IoctlSetTermios(int(tty.Fd()), setTermios, settings) // on an error the default settings will do
	}
}

// Size is a terminal's size, and a flag's value.
type Size struct{ Rows, Cols uint16 }

// DefaultSize is wide enough that Claude Code does not wrap its lines.
var DefaultSize = Size{Rows: 50, Cols: 200}

// Set parses rows and columns, such as 50x200.
func (s *Size) Set(text string) error {
	rows, cols, found := strings.Cut(strings.ToLower(text), "x")
	r, rowsErr := strconv.ParseUint(rows, 10, 16)
	c, colsErr := strconv.ParseUint(cols, 10, 16)
	if !found || rowsErr != nil || colsErr != nil || r == 0 || c == 0 {
		return fmt.Errorf("it takes ROWSxCOLS, each from 1 to %d, such as 50x200", math.MaxUint16)
	}
	*s = Size{uint16(r), uint16(c)}
	return nil
}

func (s *Size) String() string { return fmt.Sprintf("%dx%d", s.Rows, s.Cols) }

func (s *Size) Type() string { return "ROWSxCOLS" }

func (s *session) reshape() {
	if err := s.setSize(); err != nil && !errors.Is(err, os.ErrClosed) {
		s.Note("follow the size of the terminal: %v: the command keeps its size", err)
	}
}

func (s *session) setSize() error {
	ws := &pty.Winsize{Rows: s.Size.Rows, Cols: s.Size.Cols}
	if s.caller.sized != nil && !s.FixedSize {
		if its, err := pty.GetsizeFull(s.caller.sized); err == nil && its.Rows > 0 && its.Cols > 0 {
			ws = its
		}
	}
	if err := pty.Setsize(s.ptmx, ws); err != nil {
		return err
	}
	if shape := (Size{ws.Rows, ws.Cols}); shape != s.shape {
		s.shape = shape
		if s.Resized != nil {
			s.Resized(shape)
		}
	}
	return nil
}

const (
	// reaction is how long a person who begins to type takes to see that the session is over.
	reaction = 500 * time.Millisecond
	// afterLine is the same for a person who has paused within a line.
	afterLine = 30 * time.Second
	// lingerLimit bounds how long continuous keys keep this process.
	lingerLimit = time.Minute
)

// passKeys passes what is typed at the caller's terminal to the command until the session begins to end. It
// then drops what is typed, which was meant for nobody else.
func (s *session) passKeys() {
	if s.caller.typing == nil {
		return
	}
	s.keysEnd, s.keysOver = ReadKeys(s.caller.typing, func(keys []byte) (goOn bool) {
		s.safely(func() {
			_, _ = typist{s}.Write(keys) // fails if the session has just ended
			goOn = true
		})
		return goOn
	})
}

// ReadKeys passes what is typed at a terminal to pass, from a goroutine of its own, until pass returns false; nil once the
// terminal is gone. over is closed when nothing is read any more; stop waits for that. Where a read cannot be cancelled
// (/dev/tty on macOS), the key after stop is lost.
func ReadKeys(f *os.File, pass func(keys []byte) (goOn bool)) (stop func(), over <-chan struct{}) {
	done := make(chan struct{})
	from, stop := io.Reader(f), func() {}
	if keys, err := cancelreader.NewReader(f); err == nil {
		from, stop = keys, func() {
			keys.Cancel()
			<-done
			_ = keys.Close() // only read
		}
	}
	go func() {
		defer close(done)
		for buf := make([]byte, 4<<10); ; {
			n, err := from.Read(buf)
			if n > 0 && !pass(buf[:n]) {
				return
			}
			if err != nil {
				if !errors.Is(err, cancelreader.ErrCanceled) {
					pass(nil)
				}
				return
			}
		}
	}()
	return stop, done
}

type typist struct{ s *session }

// Write implements [io.Writer]. Once the session begins to end, the typist takes everything and types nothing.
func (t typist) Write(b []byte) (_ int, err error) {
	keys := b
	front, unknown := unix.IoctlGetInt(int(t.s.ptmx.Fd()), unix.TIOCGPGRP)
	if leader, gone := unix.Getsid(front); unknown == nil && gone == nil && front == leader {
		keys = suspend.ReplaceAllLiteral(b, nil)
	}
	if t.s.typing.keys(keys, time.Now()); !t.s.deaf.Load() {
		_, err = t.s.ptmx.Write(keys)
	}
	return len(b), err
}

// suspend is ctrl-z, also as the kitty keyboard (with its locks) and XTerm encode it. A client in front would leave its
// screen and wait for the fg of a shell, which it does not have.
var suspend = regexp.MustCompile(`\x1a|\x1b\[(122;(5|69|133|197)u|27;5;122~)`)

// linger waits, after the terminal shows the session's end, until the person has stopped typing, so
// that no shell gets the rest.
func (s *session) linger(o Outcome) {
	byItself := o.Cause == Ended && o.Status.Exited()
	switch {
	case s.keysEnd == nil:
		return // nobody can type
	case byItself && !s.cut && (o.Status.ExitStatus() == 0 || !s.typing.hasTyped() && !s.takesSingleKeys()):
		return // the person who typed ended it, or nobody typed
	case s.typing.hasOpenLine():
		s.Note("the session is over, and the line that you had begun is lost: what you type now is dropped, up to Return")
	}
	line := afterLine
	if o.Cause == Signalled {
		line = quiet
	}
	over := time.Now()
	for hurried, limit := s.hurried(), time.After(lingerLimit); ; {
		rest := max(s.typing.rest(time.Now(), line), reaction-time.Since(over))
		if rest <= 0 {
			return
		}
		select {
		case <-time.After(min(rest, MayEndEvery)):
		case <-s.keysOver:
			return // the terminal is gone
		case <-hurried:
			return
		case <-limit:
			return
		}
	}
}

// takesSingleKeys reports whether the command takes single keys.
func (s *session) takesSingleKeys() bool {
	settings, err := unix.IoctlGetTermios(int(s.ptmx.Fd()), getTermios)
	return err == nil && settings.Lflag&unix.ICANON == 0
}

// deafen drops whatever is typed from now on.
func (s *session) deafen() {
	if !s.deaf.Swap(true) {
		s.cut = s.typing.hasOpenLine()
	}
	_ = s.ptmx.SetWriteDeadline(time.Now()) // also ends a write that is already blocked
}

// restoreCaller restores the caller's terminal and drops its unread input.
func (s *session) restoreCaller() {
	s.deafen()
	if s.out != nil && !s.draining.Load() { // an internal error cut the end short
		s.out.Flush(s.hurried())
	}
	if s.keysEnd != nil {
		s.keysEnd()
	}
	if c := s.caller; c.state != nil && inForeground(c.typing) { // no other program has taken it over
		_ = term.Restore(int(c.typing.Fd()), c.state) // fails if it is gone
		forget(int(c.typing.Fd()))
	}
}

var ( // the tests change them
	// After the session's end a process outside it may still have the terminal open. Reading stops
	// after drainPatience without output, and after drainLimit in any case.
	drainPatience = 250 * time.Millisecond
	drainLimit    = 5 * time.Second
)

// readTerminal reads what the command prints until nobody has the terminal open.
func (s *session) readTerminal() {
	defer close(s.read)
	buf := make([]byte, 64<<10)
	for {
		if s.draining.Load() {
			_ = s.ptmx.SetReadDeadline(time.Now().Add(drainPatience)) // cannot fail: see pollable
		}
		n, err := s.ptmx.Read(buf)
		if n == 0 && s.draining.Load() {
			n, err = guardian.ReadWaiting(s.ptmx, buf)
		}
		if n > 0 {
			s.lastOutput.Store(int64(s.now()))
			if s.Watch != nil {
				s.Watch(buf[:n])
			}
			s.out.Put(buf[:n])
		}
		if err != nil {
			return
		}
	}
}

// drain passes on what is left in the terminal when nobody can add to it: by then only this process should have it open.
func (s *session) drain() {
	s.draining.Store(true)
	_ = s.ptmx.SetReadDeadline(time.Now().Add(drainPatience)) // also for a read that is already blocked
	_ = s.tty.Close()                                         // with no other end open, reading ends
	select {
	case <-s.read:
	case <-time.After(drainLimit):
		_ = s.ptmx.Close() // ends the reading
		<-s.read           // Watch must not be called after the end
	}
	s.out.Flush(s.hurried())
}

// hurried is closed by the next signal.
func (s *session) hurried() <-chan struct{} {
	if sig, _ := s.Signals.Signal(); sig != 0 {
		return s.Signals.Second()
	}
	return s.Signals.First()
}
