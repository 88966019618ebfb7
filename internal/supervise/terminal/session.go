// Package terminal runs a command in a PTY and a session of its own, until the command and
// everything that it started have ended, or are made to end.
//
// A [Run] owns the process: it handles signals, waits for any child that ends, and on Linux makes the process adopt
// orphans (PR_SET_CHILD_SUBREAPER). Nothing else in the process may start processes meanwhile. Runs may follow one
// another; keys typed and children dying after the end of one belong to the next.
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

	"heartbeat/internal/machine/guardian"
	"heartbeat/internal/machine/signals"
)

// Options say what to run and what ends it.
type Options struct {
	Command []string // a name without a slash is looked up in the PATH of Env
	Dir     string   // the working directory, at which a command's relative path starts
	Env     []string

	Streams
	// Size is the terminal's size if the caller has no terminal or FixedSize is set.
	Size      Size
	FixedSize bool

	Timeout    time.Duration // 0 for none
	Grace      time.Duration // from SIGTERM to SIGKILL
	ExitSignal string        // a file whose appearance ends the session, "" for none
	// MayEnd, if set, delays the end by ExitSignal: once the file has appeared, MayEnd is called
	// until it returns true. It must not block.
	MayEnd func() bool
	// Entered, if set, is called for each line entered at the caller's terminal or through Opened.
	// Menu reports whether what the terminal shows takes single keys instead of lines.
	Entered func()
	Menu    func() bool
	// Opened, if set, gets a writer for the keys of another terminal before the command runs.
	// The writer fails once the session is over. Sizes, if set, changes Size.
	Opened func(keys io.Writer)
	Sizes  <-chan Size
	Quit   <-chan struct{} // ends the session when it is closed or sent to, nil for none
	// Signals end the session: the first one in order, the second one at once.
	Signals *signals.Caught
	Idle    Idle

	// Guardian is the pid of the process that kills what is left if this one is killed. 0 has one posted for the session:
	// that needs Linux and a program that calls [guardian.Serve].
	Guardian int
	// Then is what that process does last.
	Then guardian.Then

	Watchers
}

// Streams are the caller's. Stdout gets the output; nil discards it. Stdin and Stderr are used only if they are
// terminals.
type Streams struct {
	Stdin, Stdout, Stderr *os.File
	// Console is Stdout, if that is a terminal.
	Console *Console
}

// Watchers are called as the session goes on. Each but Note may be nil.
type Watchers struct {
	// Started gets the command's pid, which is also its process group and session, before any of its output is read.
	// Resized gets the terminal's size at the start and at each change. Neither may block.
	Started func(pid int)
	Resized func(Size)
	// Watch gets everything that the command prints, before Stdout does, from its own goroutine. The command
	// waits for it. b is valid only until Watch returns.
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

type session struct {
	Options
	processes
	display
	typed
	caller  caller
	asked   <-chan struct{} // the file of ExitSignal has appeared
	broken  chan error
	done    chan struct{}  // closed at the end, so that no sender blocks
	joined  sync.WaitGroup // goroutines that must end before the next session begins: they would remove its exit signal
	started time.Time
	idle    idleness
	ending
}

type processes struct {
	family *guardian.Family
	marked string             // the mark, "" without a guardian
	guard  *guardian.Guardian // nil for none
}

type display struct {
	ptmx, tty  *os.File
	shape      Size           // the last size that Resized got
	changes    chan os.Signal // signals about the caller's terminal
	out        *Pump
	read       chan struct{} // closed when all of the terminal's output was read
	draining   atomic.Bool
	lastOutput atomic.Int64 // since the start, like all times here
}

type typed struct {
	typing   typing
	deaf     atomic.Bool     // drop what is typed
	cut      bool            // a line was begun when deaf was set
	keysEnd  func()          // ends the reading of keys; nil if none are read
	keysOver <-chan struct{} // closed when nothing can be typed any more
}

// Run runs the command to its end. An error means that the command was not run, or an internal error.
func Run(o Options) (Outcome, error) {
	s := &session{
		Options: o,
		broken:  make(chan error, 1),
		done:    make(chan struct{}),
		started: time.Now(),
		display: display{changes: make(chan os.Signal, 16), read: make(chan struct{})},
		typed:   typed{typing: typing{entered: o.Entered, menu: o.Menu}},
	}
	defer func() { s.guard.Dismiss() }()
	defer s.joined.Wait()
	defer close(s.done)
	path, err := Find(s.Options)
	if err != nil {
		return Outcome{}, err
	}
	if err := s.awaitFile(); err != nil {
		return Outcome{}, err
	}
	s.caller = findCaller(o.Stdin, o.Stdout, o.Stderr)
	if err := s.open(); err != nil {
		return Outcome{}, err
	}
	defer s.ptmx.Close() // a hangup for anybody who is left
	defer s.tty.Close()
	// SIGPIPE would end this process. Ignoring it instead would be inherited by the command.
	signal.Notify(s.changes, syscall.SIGPIPE, syscall.SIGWINCH, syscall.SIGCONT)
	defer signal.Stop(s.changes)
	defer s.restoreCaller()
	if err := s.caller.makeRaw(); err != nil {
		return Outcome{}, err
	}
	if err := s.mark(); err != nil {
		return Outcome{}, err
	}
	if s.Opened != nil {
		s.Opened(typist{s})
	}
	if err := s.start(path); err != nil {
		return Outcome{}, err
	}
	defer s.abandon()
	if s.Started != nil {
		s.Started(s.family.Leader)
	}
	return s.run()
}

func (s *session) run() (Outcome, error) {
	var stdout io.Writer = io.Discard
	var reset func()
	switch {
	case s.hasConsole():
		stdout, reset = s.Console, s.Console.reset
	case s.Stdout != nil:
		stdout = s.Stdout
	}
	s.out = NewPump(stdout, func(err error) {
		s.Note("stdout does not take the output (%v): what it does not take is dropped, and the session goes on", err)
	})
	s.out.Last = reset
	go s.safely(s.out.Run)
	go s.safely(s.readTerminal)
	s.passKeys()
	outcome, err := s.loop()
	s.deafen()
	s.drain()
	s.linger(outcome)
	return outcome, err
}

// hasConsole reports whether a terminal shows the session.
func (s *session) hasConsole() bool { return s.Stdout != nil && s.Console != nil }

// safely runs a function. A panic ends the session and restores the caller's terminal.
func (s *session) safely(run func()) {
	defer func() {
		if p := recover(); p != nil {
			poke(s.broken, fmt.Errorf("internal error: %v: please report it with this:\n%s", p, debug.Stack()))
		}
	}()
	run()
}

func (s *session) now() time.Duration { return time.Since(s.started) }
