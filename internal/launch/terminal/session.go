package terminal

import (
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"heartbeat/internal/host/guardian"
	"heartbeat/internal/host/signals"
	"heartbeat/internal/launch/pump"
)

// Options are what to run and what ends it.
type Options struct {
	Command []string // a name without a slash is looked up in the PATH of Env
	Dir     string   // the working directory; a relative path of the command starts here
	Env     []string

	// The caller's streams. Stdout gets the output; nil discards it. Stdin and Stderr
	// are used only if they are terminals.
	Stdin, Stdout, Stderr *os.File

	// Size is the terminal's size if the caller has no terminal, or if FixedSize is
	// set.
	Size      Size
	FixedSize bool

	Timeout    time.Duration // 0 for none
	Grace      time.Duration // from SIGTERM to SIGKILL
	ExitSignal string        // a file whose appearance ends the session, "" for none
	// MayEnd, if set, delays the end by ExitSignal: once the file has appeared, it is
	// called until it returns true. It must not block.
	MayEnd func() bool
	// Typed, if set, also gets what is typed at the caller's terminal.
	Typed func([]byte)
	Quit  <-chan struct{} // ends the session when it is closed or sent to, nil for none
	// Signals end the session: the first one in order, the second one at once. If nil,
	// the session catches them itself.
	Signals *signals.Taken
	Idle    Idle

	// Guard starts a process that kills what is left of the session if this process
	// is killed. It needs Linux and a program that calls [guardian.Serve].
	Guard bool

	// Started gets the command's pid, which is also its process group and session,
	// before any of its output is read. Resized gets the size of its terminal, at the
	// start and at each change. They must not block, and may be nil.
	Started func(pid int)
	Resized func(Size)
	// Watch gets everything that the command prints, before Stdout does, from a
	// goroutine of its own. The command waits for it. b is valid only until it
	// returns. It may be nil.
	Watch func(b []byte)

	// Note gets a sentence about anything unusual. It must not block.
	Note func(format string, args ...any)
}

// Cause is why a session ended.
type Cause int

const (
	Ended     Cause = iota // the command ended by itself
	TimedOut               // after Options.Timeout
	GaveUp                 // it stayed idle
	Asked                  // by the file of Options.ExitSignal
	Signalled              // by a signal to this process
	Quit                   // by Options.Quit
)

// Outcome is how a session ended.
type Outcome struct {
	Cause  Cause
	Status syscall.WaitStatus // the command's own
	Signal syscall.Signal     // if Cause is Signalled
}

// session is one run.
type session struct {
	Options
	caller     caller
	ptmx, tty  *os.File
	leader     int          // the command's pid, and that of its group and session
	strangers  map[int]bool // children that are not of the session
	crowded    bool         // a stranger may still run
	marked     string       // the mark, "" for no guardian
	guard      *guardian.Guardian
	guardPID   atomic.Int64 // 0 for none, and once it has died
	deaths     chan death
	children   chan os.Signal // a child may have died
	joined     sync.WaitGroup // goroutines that must end before the next session begins
	shape      Size           // what Resized got last
	changes    chan os.Signal // signals about the caller's terminal
	asked      <-chan struct{}
	broken     chan error
	done       chan struct{} // closed at the end, so that no sender blocks
	out        *pump.Pump
	read       chan struct{} // closed when the terminal's output was read to its end
	draining   atomic.Bool
	lastOutput atomic.Int64 // since the start, like all times here
	started    time.Time
	idle       idleness
	ending
}

// Run runs the command to its end. An error means that the command was not run, or
// is an internal one.
func Run(o Options) (Outcome, error) {
	s := &session{
		Options: o, deaths: make(chan death), children: make(chan os.Signal, 1), changes: make(chan os.Signal, 16), broken: make(chan error, 1),
		done: make(chan struct{}), read: make(chan struct{}), started: time.Now(),
	}
	if s.Signals == nil {
		s.Signals = signals.Take()
		defer s.Signals.Stop()
	}
	defer s.dismiss()
	defer s.joined.Wait()
	defer close(s.done)
	path, err := s.find()
	if err != nil {
		return Outcome{}, err
	}
	asked, err := awaitFile(s)
	if err != nil {
		return Outcome{}, err
	}
	defer asked.close()
	s.asked = asked.seen
	s.caller = findCaller(o.Stdin, o.Stdout, o.Stderr)
	if err := s.open(); err != nil {
		return Outcome{}, err
	}
	defer s.ptmx.Close() // a hangup for anybody who is left
	defer s.tty.Close()
	s.listen()
	defer signal.Stop(s.changes)
	defer s.caller.restore()
	if err := s.caller.raw(); err != nil {
		return Outcome{}, err
	}
	if err := s.mark(); err != nil {
		return Outcome{}, err
	}
	if err := s.start(path); err != nil {
		return Outcome{}, err
	}
	defer s.abandon()
	if s.Started != nil {
		s.Started(s.leader)
	}
	return s.run()
}

// run passes input and output through until the end.
func (s *session) run() (Outcome, error) {
	var stdout io.Writer = io.Discard
	if s.Stdout != nil {
		stdout = s.Stdout
	}
	s.out = pump.New(stdout, func(err error) {
		s.Note("stdout does not take the output (%v): what it does not take is dropped, and the session goes on", err)
	})
	s.spawn(s.out.Run)
	s.spawn(s.readTerminal)
	outcome, err := s.attend()
	s.drain()
	return outcome, err
}

// attend passes keys on as long as a process of the session lives.
func (s *session) attend() (Outcome, error) {
	if s.caller.typing != nil {
		defer s.passKeys()()
	}
	return s.loop()
}

// listen catches the signals about the caller's terminal. It also catches SIGPIPE,
// which would end this process. It does not ignore SIGPIPE, since the command would
// inherit that.
func (s *session) listen() {
	signal.Notify(s.changes, syscall.SIGPIPE, syscall.SIGWINCH, syscall.SIGCONT)
}

// spawn runs a function beside the loop. If it panics, the session ends and the
// caller's terminal is restored.
func (s *session) spawn(run func()) {
	go func() {
		defer func() {
			if p := recover(); p != nil {
				select {
				case s.broken <- fmt.Errorf("internal error: %v: please report it with this:\n%s", p, debug.Stack()):
				default: // the first one is enough
				}
			}
		}()
		run()
	}()
}

// join is spawn for a function that must end before the next session begins, or it
// would take away that one's events.
func (s *session) join(run func()) {
	s.joined.Add(1)
	s.spawn(func() {
		defer s.joined.Done()
		run()
	})
}

func (s *session) now() time.Duration { return time.Since(s.started) }
