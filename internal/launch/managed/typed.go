package managed

import (
	"bytes"
	"sync"
	"time"

	"heartbeat/internal/screen"
)

const (
	// promptPatience is how long a session must sit at its prompt before it is ended, if
	// a person has entered something: the client turns to that once the entries are done.
	promptPatience = 3 * time.Second
	// typingPatience is how long a person may pause within a line.
	typingPatience = 10 * time.Second
)

// typed is what a person does at the terminal of a session.
type typed struct {
	mu      sync.Mutex
	entered bool      // a line was, since the session began
	begun   bool      // a line is begun and not entered
	at      time.Time // when the last key was typed
	// waiting is since when the session has been at its prompt, zero while it is not.
	waiting time.Time
}

// keys notes what is typed. What begins with an escape is a terminal's own report.
func (t *typed) keys(b []byte) {
	if len(b) == 0 || b[0] == '\x1b' {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.at, t.begun = time.Now(), !bytes.ContainsAny(b, "\r\n")
	t.entered = t.entered || !t.begun
}

// mayEnd reports whether the session may be ended: nothing that a person entered waits
// for its answer, as far as the screen shows (the client queues it while it works on
// entries), and no line is being typed.
func (t *typed) mayEnd(sight screen.Kind) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	atPrompt := sight == screen.Ready || sight == screen.Unknown // a program that is not known may be at its prompt
	switch {
	case !t.entered:
		return true
	case !atPrompt || t.begun && now.Sub(t.at) < typingPatience:
		t.waiting = time.Time{}
		return false
	case t.waiting.IsZero():
		t.waiting = now
	}
	return now.Sub(t.waiting) >= promptPatience
}
