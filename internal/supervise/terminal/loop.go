package terminal

import (
	"os"
	"sync/atomic"
	"syscall"
	"time"
)

// loop handles all events until the session is over. It does not poll.
func (s *session) loop() (Outcome, error) {
	var timeout, guard <-chan time.Time
	if s.Timeout > 0 {
		timeout = time.After(s.Timeout)
	}
	if s.marked != "" {
		guard = time.After(guardAfter)
	}
	if s.Idle.Timeout > 0 {
		s.idle.due = time.After(s.Idle.Timeout)
	}
	first, second, gone := s.Signals.First(), s.Signals.Second(), s.family.Gone()
	var failure error
	for {
		select {
		case <-s.family.Over():
			s.outcome.Status = s.family.Status()
			return s.outcome, failure
		case <-gone:
			gone, s.stopping = nil, true
			s.deafen()
		case <-first:
			first = nil // a closed channel would be selected for ever
			sig, _ := s.Signals.Signal()
			s.stop(Outcome{Cause: Signalled, Signal: sig})
		case <-second:
			second = nil
			s.family.End(0)
		case sig := <-s.changes:
			s.handle(sig)
		case s.Size = <-s.Sizes:
			s.reshape()
		case <-s.asked:
			s.end(Asked)
		case <-s.later:
			s.end(s.wish)
		case <-guard:
			s.postGuardian()
		case <-s.Quit:
			s.Quit = nil
			s.end(Quit)
		case <-timeout:
			s.end(TimedOut)
		case <-s.idle.due:
			s.checkIdle()
		case failure = <-s.broken:
			s.stop(Outcome{})
		}
	}
}

// MayEndEvery is how often to check again whether the session may end, or a person still types.
const MayEndEvery = 250 * time.Millisecond

// end ends the session in order, once nobody types and, for the exit signal, once MayEnd allows it.
// Every other cause outranks the exit signal.
func (s *session) end(why Cause) {
	if s.stopping {
		return
	}
	if s.wish == Ended || s.wish == Asked {
		s.wish = why
	}
	patience := limitPatience
	if s.wish == Asked {
		patience = linePatience
	}
	rest := s.typing.rest(time.Now(), patience)
	if rest <= 0 && s.wish == Asked && s.MayEnd != nil && !s.MayEnd() {
		rest = MayEndEvery
	}
	if rest <= 0 {
		s.stop(Outcome{Cause: s.wish})
		return
	}
	s.later = time.After(min(rest, MayEndEvery))
}

func (s *session) handle(sig os.Signal) {
	if sig == syscall.SIGCONT { // another program may have used the terminal and changed its mode
		if err := s.caller.makeRaw(); err != nil {
			s.Note("%v", err)
		}
	}
	if sig != syscall.SIGPIPE && s.caller.sized != nil && !s.FixedSize { // the kernel signals the command
		s.reshape()
	}
}

// Idle says what to do about a command that prints nothing.
type Idle struct {
	Timeout time.Duration // how long without output is idle; 0 disables it
	Prompt  string        // typed, with Return, into an idle command
	Retries int           // how often Prompt is typed before the session is given up
	// Busy reports whether ESC would interrupt work; then none is typed.
	Busy func() bool
}

const (
	// escape cancels what hangs. A single ESC may be read as the start of a key's sequence.
	escape = "\x1b\x1b"
	// escapePause lets the command handle ESC before the text arrives.
	escapePause = 50 * time.Millisecond
	// echoTime is how long output after a keepalive may be its echo and so no sign of life.
	echoTime = 2 * time.Second
)

type idleness struct {
	due     <-chan time.Time // when the silence may have lasted too long
	tries   int
	typedAt time.Duration
	typing  atomic.Bool // a keepalive is being typed
}

// checkIdle acts if the command has been silent for too long, since its last output or keepalive.
func (s *session) checkIdle() {
	if s.stopping {
		return
	}
	i, printed := &s.idle, time.Duration(s.lastOutput.Load())
	if i.tries > 0 && printed >= i.typedAt+escapePause+min(echoTime, s.Idle.Timeout/2) {
		i.tries = 0 // it works again
	}
	if rest := max(printed, i.typedAt) + s.Idle.Timeout - s.now(); rest > 0 {
		i.due = time.After(rest)
		return
	}
	if rest := s.typing.rest(time.Now(), linePatience); rest > 0 { // a line that a person has begun would be cut
		i.due = time.After(rest)
		return
	}
	if i.tries >= s.Idle.Retries {
		s.stop(Outcome{Cause: GaveUp})
		return
	}
	i.tries++
	i.typedAt = s.now()
	s.keepAlive()
	i.due = time.After(s.Idle.Timeout)
}

// keepAlive types what may revive a session that hangs.
func (s *session) keepAlive() {
	how := "ESC and the idle prompt"
	cut := s.Idle.Busy == nil || !s.Idle.Busy()
	if !cut {
		how = "the idle prompt without ESC, since an entry is in flight"
	}
	s.Note("no output for %v: typing %s (%d of %d)", s.Idle.Timeout, how, s.idle.tries, s.Idle.Retries)
	if s.idle.typing.Swap(true) {
		return // the command has not read the last one yet
	}
	go s.safely(func() {
		defer s.idle.typing.Store(false)
		if cut {
			_, _ = s.ptmx.WriteString(escape) // fails if the session has just ended
			time.Sleep(escapePause)
		}
		_, _ = s.ptmx.WriteString(s.Idle.Prompt + "\r")
	})
}
