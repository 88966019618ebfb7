package terminal

import (
	"time"
)

// Idle says what is done about a command that prints nothing.
type Idle struct {
	Timeout time.Duration // silence that is idleness, 0: none is
	Prompt  string        // typed, with a return behind it
	Retries int           // how often, before the session is given up
	// Busy reports that work is going on that ESC would cut off: it is left out.
	Busy func() bool
}

const (
	// escape cancels what hangs. A single ESC may be taken for the beginning of a
	// key.
	escape = "\x1b\x1b"
	// escapePause lets it be handled before the text comes.
	escapePause = 50 * time.Millisecond
	// echoSettles is how long what is printed behind a keepalive may be its echo,
	// and no sign of life.
	echoSettles = 2 * time.Second
)

// idleness is how a session that may be idle is doing.
type idleness struct {
	timer   *time.Timer // when silence may have become too long
	tries   int
	typedAt time.Duration
	typing  chan struct{} // holds a token while a keepalive is being typed
}

func (i *idleness) begin(o Idle) {
	if o.Timeout > 0 {
		i.timer, i.typing = time.NewTimer(o.Timeout), make(chan struct{}, 1)
	}
}

func (i *idleness) stop() {
	if i.timer != nil {
		i.timer.Stop()
	}
}

// lookIdle is called when the command may have been silent for too long. Silence
// begins with the last output or keepalive.
func (s *session) lookIdle() {
	if s.stopping {
		return
	}
	i, printed := &s.idle, time.Duration(s.lastOutput.Load())
	if i.tries > 0 && printed >= i.typedAt+escapePause+min(echoSettles, s.Idle.Timeout/2) {
		i.tries = 0 // it came back to life
	}
	if rest := max(printed, i.typedAt) + s.Idle.Timeout - s.now(); rest > 0 {
		i.timer.Reset(rest)
		return
	}
	if i.tries >= s.Idle.Retries {
		s.stop(Outcome{Cause: GaveUp})
		return
	}
	i.tries++
	i.typedAt = s.now()
	s.keepAlive()
	i.timer.Reset(s.Idle.Timeout)
}

// keepAlive types what may bring a session that hangs back to life.
func (s *session) keepAlive() {
	how := "ESC and the idle prompt"
	cut := s.Idle.Busy == nil || !s.Idle.Busy()
	if !cut {
		how = "the idle prompt without ESC, since an entry is in flight"
	}
	s.Note("no output for %v: typing %s (%d of %d)", s.Idle.Timeout, how, s.idle.tries, s.Idle.Retries)
	select {
	case s.idle.typing <- struct{}{}:
	default:
		return // the last one is still not taken
	}
	s.spawn(func() {
		defer func() { <-s.idle.typing }()
		if cut {
			_, _ = s.ptmx.WriteString(escape) // the session may have ended just now
			time.Sleep(escapePause)
		}
		_, _ = s.ptmx.WriteString(s.Idle.Prompt + "\r")
	})
}
