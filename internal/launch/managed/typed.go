package managed

import (
	"bytes"
	"sync"
	"time"

	"heartbeat/internal/claude/screen"
)

const (
	// promptPatience is how long a session has to sit at its prompt before it is ended
	// in which a person has entered something: the client takes what was entered
	// meanwhile once the entries are done.
	promptPatience = 3 * time.Second
	// typingPatience is how long a person may pause amid a line.
	typingPatience = 10 * time.Second
)

// typed is what a person does at the terminal of a session.
type typed struct {
	mu      sync.Mutex
	entered bool      // something was, since the session began
	amid    bool      // a line is begun
	at      time.Time // of the last key
	// waiting is since when the session has been at its prompt, zero while it is not.
	waiting time.Time
}

// keys notes what is typed. What a terminal says by itself begins with an escape.
func (t *typed) keys(b []byte) {
	if len(b) == 0 || b[0] == '\x1b' {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.at, t.amid = time.Now(), !bytes.ContainsAny(b, "\r\n")
	t.entered = t.entered || !t.amid
}

// mayEnd reports whether nothing that a person entered waits for its answer, as far
// as the screen shows: the client has queued it while it worked on entries. A line
// that they are typing is left to them.
func (t *typed) mayEnd(on *screen.Screen) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	now, sight := time.Now(), screen.Recognise(on.Text()).Kind
	atPrompt := sight == screen.Ready || sight == screen.Unknown // of a program that is not known
	switch {
	case !t.entered:
		return true
	case !atPrompt || t.amid && now.Sub(t.at) < typingPatience:
		t.waiting = time.Time{}
		return false
	case t.waiting.IsZero():
		t.waiting = now
	}
	return now.Sub(t.waiting) >= promptPatience
}
