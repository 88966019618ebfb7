package why

import (
	"fmt"

	"heartbeat/internal/words"
)

// Asking returns a session that waits for a person, or nil.
func (f Facts) Asking() *Session {
	for i := range f.Sessions {
		if f.Sessions[i].asks() {
			return &f.Sessions[i]
		}
	}
	return nil
}

func (s *Session) asks() bool { return s.Asks != nil && s.runs() }

// asked describes the question. An answer is only noticed at the end of the turn.
func asked(s *Session) string {
	return fmt.Sprintf("session %s asked for a person at %s (%s), and no turn of it has ended since", words.Short(s.ID), words.Stamp(s.Asks.At), s.Asks)
}

// asking explains entries that wait while the session asks for a person about other
// work. A session that can be woken has no other work.
func (f Facts) asking() (State, string) {
	s := f.Current()
	if s == nil || !s.asks() || !f.something() || f.waker() != nil {
		return "", ""
	}
	sentence := fmt.Sprintf("%s: unless somebody has answered, %s behind that", asked(s), f.waits())
	if f.Backoff != nil {
		sentence += "; delivery is " + f.Backoff.String()
	}
	return Person, sentence
}
