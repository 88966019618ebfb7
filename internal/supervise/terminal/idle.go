package terminal

import (
	"time"
)

// Idle is what to do about a command that prints nothing.
type Idle struct {
	Timeout time.Duration // how long without output is idle; 0 disables it
	Prompt  string        // typed when it is idle, followed by Return
	Retries int           // how often it is typed before the session is given up
	// Busy reports whether work is going on that ESC would interrupt; then no ESC is
	// typed.
	Busy func() bool
}

const (
	// escape cancels what hangs. A single ESC may be read as the start of a key's
	// sequence.
	escape = "\x1b\x1b"
	// escapePause lets the command handle ESC before the text arrives.
	escapePause = 50 * time.Millisecond
	// echoSettles is how long after a keepalive output may be its echo, and no sign
	// of life.
	echoSettles = 2 * time.Second
)

// idleness is what is known about a session's silence.
type idleness struct {
	timer   *time.Timer // when the silence may have lasted too long
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

// lookIdle is called when the command may have been silent for too long. The silence
// begins at the last output or keepalive.
func (s *session) lookIdle() {
	if s.stopping {
		return
	}
	i, printed := &s.idle, time.Duration(s.lastOutput.Load())
	if i.tries > 0 && printed >= i.typedAt+escapePause+min(echoSettles, s.Idle.Timeout/2) {
		i.tries = 0 // it works again
	}
	if rest := max(printed, i.typedAt) + s.Idle.Timeout - s.now(); rest > 0 {
		i.timer.Reset(rest)
		return
	}
	if rest := s.typing.rest(time.Now(), linePatience); rest > 0 { // a line that a person has begun would be cut
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

// keepAlive types what may revive a session that hangs.
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
		return // the command has not read the last one yet
	}
	s.spawn(func() {
		defer func() { <-s.idle.typing }()
		if cut {
			_, _ = s.ptmx.WriteString(escape) // fails if the session has just ended
			time.Sleep(escapePause)
		}
		_, _ = s.ptmx.WriteString(s.Idle.Prompt + "\r")
	})
}
