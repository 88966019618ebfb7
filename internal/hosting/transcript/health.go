package transcript

import (
	"fmt"
	"strings"
	"time"
)

// trouble is what is and was wrong with a database.
type trouble struct {
	err   error // nil while nothing is
	since time.Time
	past  string // the last one that is over, in a sentence
}

// is notes that something fails, or works again, and logs a change.
func (t *trouble) is(err error, log func(string), fails, works string) {
	switch was := t.err; {
	case was == nil && err != nil:
		t.since = time.Now()
		log(fails + ": " + err.Error())
	case was != nil && err == nil:
		t.past = fmt.Sprintf("%s, as they were not from %s to %s (%v)", works, t.since.Format(time.TimeOnly), time.Now().Format(time.TimeOnly), was)
		log(t.past)
	}
	t.err = err
}

// Health is the state of a store.
type Health struct {
	Last    int64  `json:"last"`              // the number of the last message
	Stored  int64  `json:"stored"`            // up to which number the database has them
	Lost    int64  `json:"lost,omitempty"`    // messages for which there was no room
	Trouble string `json:"trouble,omitempty"` // what is wrong now, in a sentence; empty if nothing is
	Past    string `json:"past,omitempty"`    // the last trouble that is over, in a sentence
}

// Health says how the store is doing.
func (s *Store) Health() Health {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := Health{Last: s.last, Stored: s.stored, Lost: s.lost, Past: s.keeps.past}
	var said []string
	if err := s.keeps.err; err != nil {
		said = append(said, fmt.Sprintf("the host's database takes no messages since %s, and %d wait in memory (%v)",
			s.keeps.since.Format(time.TimeOnly), len(s.held), err))
	}
	if err := s.shows.err; err != nil {
		said = append(said, fmt.Sprintf("the transcript cannot be written to the guild's table since %s, and is tried again (%v)",
			s.shows.since.Format(time.TimeOnly), err))
	}
	if s.lost > 0 {
		said = append(said, fmt.Sprintf("%d messages are lost, since there was no room for them", s.lost))
	}
	h.Trouble = strings.Join(said, "; ")
	return h
}
