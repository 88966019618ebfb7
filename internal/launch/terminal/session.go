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

// Options say what is run, and what ends it.
type Options struct {
	Command []string // a name without a slash is looked for in the PATH of Env
	Dir     string   // where it runs, and what a relative path of the command is relative to
	Env     []string

	// The caller's. Only terminals and Stdout are used; without a Stdout nothing is
	// printed.
	Stdin, Stdout, Stderr *os.File

	// Size is that of the terminal where the caller has none to follow, or with
	// FixedSize in any case.
	Size      Size
	FixedSize bool

	Timeout    time.Duration // 0: none
	Grace      time.Duration // from SIGTERM to SIGKILL
	ExitSignal string        // a file whose appearance ends the session, "" for none
	// MayEnd, if set, is asked, from then on and until it agrees, whether the session
	// may end. It must not block.
	MayEnd func() bool
	// Typed, if set, gets what is typed at the caller's terminal, as the session does.
	Typed func([]byte)
	Quit  <-chan struct{} // ends the session once it is closed or sent to, nil for none
	// Signals end the session: the first one in order, the second one at once. Where
	// it is nil, the session takes them itself.
	Signals *signals.Taken
	Idle    Idle

	// Guard has a process stand by which kills what is left of the session should
	// this one be killed: on Linux, and in a program that calls [guardian.Serve].
	Guard bool

	// Started is told the command's process id, which is its group's and session's
	// too, before anything that it prints is read. Resized is told the size of its
	// terminal, at the start and whenever it changes. Neither may block; both may be
	// nil.
	Started func(pid int)
	Resized func(Size)
	// Watch sees everything that the command prints, as it is read and before Stdout
	// gets it, from a goroutine of its own. The command waits for it, and b is only
	// good until it returns. It may be nil.
	Watch func(b []byte)

	// Note is told, in a sentence each, what happens besides. It must not block.
	Note func(format string, args ...any)
}

// Cause is why a session came to its end.
type Cause int

const (
	Ended     Cause = iota // the command ended by itself
	TimedOut               // after Options.Timeout
	GaveUp                 // it stayed idle
	Asked                  // by the file of Options.ExitSignal
	Signalled              // by a signal to this process
	Quit                   // by Options.Quit
)

// Outcome is how a session came to its end.
type Outcome struct {
	Cause  Cause
	Status syscall.WaitStatus // the command's own
	Signal syscall.Signal     // with Signalled
}

// session is one run.
type session struct {
	Options
	caller     caller
	ptmx, tty  *os.File
	leader     int // the command's process id, and that of its group and session
	strangers  map[int]bool
	crowded    bool   // a child lives that is none of the session
	marked     string // the mark, "" for no guardian
	guard      *guardian.Guardian
	guardPID   atomic.Int64 // 0 for none, and once it has died
	deaths     chan death
	children   chan os.Signal // something may have become of a child
	joined     sync.WaitGroup // who must be through before the next session begins
	shape      Size           // what Resized was told last
	changes    chan os.Signal // that concern the caller's terminal
	asked      <-chan struct{}
	broken     chan error
	done       chan struct{} // closed at the end, for who might still want to tell something
	out        *pump.Pump
	read       chan struct{} // closed once the terminal's output was read to its end
	draining   atomic.Bool
	lastOutput atomic.Int64 // since the start, as all times here
	started    time.Time
	idle       idleness
	ending
}

// Run runs the command to its end. An error means that it was not run, unless it
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
	defer s.ptmx.Close() // it hangs up, should anybody be left
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

// run passes everything through, until the end.
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

// attend passes the keys on as long as anybody of the session lives.
func (s *session) attend() (Outcome, error) {
	if s.caller.typing != nil {
		defer s.passKeys()()
	}
	return s.loop()
}

// listen asks for the signals that concern the caller's terminal. That of a broken
// pipe is caught, since it would end this process; ignoring it would have the
// command ignore it as well.
func (s *session) listen() {
	signal.Notify(s.changes, syscall.SIGPIPE, syscall.SIGWINCH, syscall.SIGCONT)
}

// spawn runs something beside the loop. Its panic ends the session, and leaves
// the caller's terminal as it was.
func (s *session) spawn(run func()) {
	go func() {
		defer func() {
			if p := recover(); p != nil {
				select {
				case s.broken <- fmt.Errorf("internal error: %v: please report it with this:\n%s", p, debug.Stack()):
				default: // one is enough
				}
			}
		}()
		run()
	}()
}

// join is spawn for what would take from the next session what is not meant for
// this one.
func (s *session) join(run func()) {
	s.joined.Add(1)
	s.spawn(func() {
		defer s.joined.Done()
		run()
	})
}

func (s *session) now() time.Duration { return time.Since(s.started) }
