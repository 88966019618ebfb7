package terminal

import (
	"os"
	"syscall"
	"time"
)

// loop handles everything that happens until the session is over. It does not poll
// while nothing happens.
func (s *session) loop() (Outcome, error) {
	if s.Timeout > 0 {
		s.timeout = time.NewTimer(s.Timeout)
		defer s.timeout.Stop()
	}
	var guard *time.Timer
	if s.marked != "" {
		guard = time.NewTimer(guardAfter)
		defer guard.Stop()
	}
	s.idle.begin(s.Idle)
	defer s.idle.stop()
	first, second := s.Signals.First(), s.Signals.Second()
	var failure error
	for !s.over {
		select {
		case d := <-s.deaths:
			s.bury(d)
		case <-first:
			first = nil // it is closed, and would be selected for ever
			sig, _ := s.Signals.Signal()
			s.stop(Outcome{Cause: Signalled, Signal: sig})
		case <-second:
			second = nil
			s.kill()
		case sig := <-s.changes:
			s.handle(sig)
		case s.Size = <-s.Sizes:
			s.reshape()
		case <-s.asked:
			s.end(Asked)
		case <-channel(s.later):
			s.end(s.wish)
		case <-channel(guard):
			s.post()
		case <-s.Quit:
			s.Quit = nil
			s.end(Quit)
		case <-channel(s.timeout):
			s.end(TimedOut)
		case <-channel(s.idle.timer):
			s.lookIdle()
		case <-channel(s.grace):
			s.kill()
		case <-channel(s.sweep):
			s.sweepUp()
		case failure = <-s.broken:
			s.stop(Outcome{})
		}
	}
	return s.outcome, failure
}

// MayEndEvery is how often to ask again whether the session may end, or a person's line goes on.
const MayEndEvery = 250 * time.Millisecond

// end ends the session in order, once nobody types and, if the exit signal asked for it, it
// may. What ends it in any case goes before that.
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
	s.later = time.NewTimer(min(rest, MayEndEvery))
}

// channel returns the timer's channel, or nil, which blocks for ever, for no timer.
func channel(t *time.Timer) <-chan time.Time {
	if t == nil {
		return nil
	}
	return t.C
}

// handle reacts to a signal about the caller's terminal.
func (s *session) handle(sig os.Signal) {
	switch {
	case sig == syscall.SIGWINCH:
		s.resize()
	case sig == syscall.SIGCONT: // another program had the terminal, and may have changed its mode
		if err := s.caller.raw(); err != nil {
			s.Note("%v", err)
		}
		s.resize()
	}
}
