package transcript

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// health is what is and was wrong.
type health struct {
	spool    error // nil while the spool can be written
	database error // nil while the database takes messages
	row      error // nil while it takes the guild's row
	since    time.Time
	past     string
	lost     int64
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
	h := Health{Last: s.next() - 1, Stored: min(s.stored.Load(), s.next()-1), Lost: s.health.lost, Past: s.health.past}
	var said []string
	if err := s.health.database; err != nil {
		said = append(said, fmt.Sprintf("the database takes no messages since %s, and %d wait in %s (%v)",
			s.health.since.Format(time.TimeOnly), h.Last-h.Stored, s.waitIn(), err))
	} else if err := s.health.row; err != nil {
		said = append(said, fmt.Sprintf("the transcript cannot be written to the guild's table, but all messages are in heartbeat_messages (%v)", err))
	}
	if err := s.health.spool; err != nil {
		said = append(said, fmt.Sprintf("the spool cannot be written (%v)", err))
	}
	if h.Lost > 0 {
		said = append(said, fmt.Sprintf("%d messages are lost, since there was no room for them", h.Lost))
	}
	h.Trouble = strings.Join(said, "; ")
	return h
}

func (s *Store) waitIn() string {
	if s.spool == nil || s.health.spool != nil {
		return "memory"
	}
	return s.o.Spool
}

func (s *Store) spoolFailed(err error) {
	if s.health.spool == nil || s.health.spool.Error() != err.Error() {
		s.o.Log("the messages cannot be written to their spool: " + err.Error())
	}
	s.health.spool = err
}

func (s *Store) spoolWorks() {
	if s.health.spool != nil {
		s.o.Log("the messages are written to their spool again")
	}
	s.health.spool = nil
}

// databaseFailed and those below are the writer's.
func (s *Store) databaseFailed(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.health.database == nil {
		s.health.since = time.Now()
		s.o.Log("the database takes no messages, they wait in the spool: " + err.Error())
	}
	s.health.database = err
}

func (s *Store) databaseWorks() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.health.database; err != nil {
		s.health.past = fmt.Sprintf("the database took no messages from %s to %s (%v)",
			s.health.since.Format(time.TimeOnly), time.Now().Format(time.TimeOnly), err)
		s.o.Log(s.health.past)
		s.health.database = nil
	}
}

func (s *Store) rowFailed(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.health.row == nil {
		s.o.Log("the transcript cannot be written to the guild's table: " + err.Error())
	}
	s.health.row = err
}

func (s *Store) rowWorks() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.health.row = nil
}

// What [Store.Close] and [Recover] may leave behind.
var (
	ErrWaiting = errors.New("messages wait in the spool for the database")
	ErrLost    = errors.New("messages are lost")
)
