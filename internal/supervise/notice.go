package supervise

import (
	"fmt"
	"time"

	"heartbeat/internal/screen"
	"heartbeat/internal/supervise/client"
	"heartbeat/internal/words"
)

// promptless is how long a session that was given a prompt may show its input
// line before the first turn begins.
const promptless = 5 * time.Second

// noticer tells what a screen shows before any hook does, or what none tells.
type noticer struct {
	*client.Client
	cause  string    // the error that was told last, "" for none
	idle   time.Time // since when the prompt has been there, zero while it is not
	begun  bool      // a turn has begun
	silent bool      // nothing is said about a prompt
}

// notice looks at the screen of a session until it is over, and says what it finds. It
// decides nothing.
func (r *run) notice(s *session) {
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	n := noticer{Client: s.client, silent: r.Mode != Drain || r.Attended}
	drawn, text := int64(-1), ""
	for {
		select {
		case <-s.over:
			return
		case <-look.C:
		}
		if s.name() == "" || n.silent && s.drawn.Load() == drawn {
			continue
		}
		if now := s.drawn.Load(); now != drawn {
			drawn, text = now, s.screen.Text()
		}
		if line := n.see(text, s.met(&s.worked) || s.met(&s.failed), time.Now()); line != "" {
			r.Line(time.Now(), line)
		}
	}
}

// see is what to say about a screen, "" for nothing.
func (n *noticer) see(text string, worked bool, now time.Time) string {
	sight := n.Recognise(text)
	n.begun = n.begun || worked || sight.Kind == screen.Busy
	if sight.Kind != screen.Ready {
		n.idle = time.Time{}
	} else if n.idle.IsZero() {
		n.idle = now
	}
	if retry, ok := n.Retrying(text); ok {
		if retry.Cause == n.cause {
			return ""
		}
		n.cause = retry.Cause
		return fmt.Sprintf("the model's API says %s, try %s of %s", words.Brief(retry.Cause), retry.Try, retry.Most)
	}
	if sight.Kind == screen.Ready {
		n.cause = ""
	}
	if n.silent || n.begun || n.idle.IsZero() || now.Sub(n.idle) < promptless {
		return ""
	}
	n.silent = true
	return "the session sits at its prompt, as one does that was given none: give the command something to begin with, as in " + n.Begin
}
