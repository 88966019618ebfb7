package transcript

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"time"

	"heartbeat/internal/hosting/store"
	"heartbeat/internal/hosting/stream"
)

// lookEvery is how often a session that goes on is looked at for more messages.
const lookEvery = 200 * time.Millisecond

// Read returns the messages of a session from a number on, in order and without gaps, and
// those that come until over says that no more do, and which number was used last, or ctx is
// done: then the error is that of ctx. Nothing is kept for a reader, so there may be any number of slow ones.
func Read(ctx context.Context, o Options, from int64, over func() (last int64, over bool)) iter.Seq2[stream.Stored, error] {
	return func(yield func(stream.Stored, error) bool) {
		var err error
		for n, more := max(from, 1), true; err == nil; {
			last, ended := over() // what came until then is there
			if n, more, err = readOn(ctx, o, n, yield); !more {
				return
			}
			if ended && err == nil {
				for ; n <= last && yield(lost(n), nil); n++ {
				}
				return
			}
			select {
			case <-time.After(lookEvery):
			case <-ctx.Done():
				err = ctx.Err()
			}
		}
		if err != nil {
			yield(stream.Stored{}, err)
		}
	}
}

// readOn returns the messages that there are from n on, and the number of the next. more is
// false once nobody wants it.
func readOn(ctx context.Context, o Options, n int64, yield func(stream.Stored, error) bool) (next int64, more bool, err error) {
	for {
		m, found, err := o.DB.At(ctx, o.SessionID, n)
		if err != nil || !found {
			return n, true, err
		}
		for ; n < m.N; n++ {
			if !yield(lost(n), nil) {
				return n, false, nil
			}
		}
		if n++; !yield(m, nil) {
			return n, false, nil
		}
	}
}

// ReadEnded returns the messages of a session that no host keeps any more, from a
// number on.
func ReadEnded(ctx context.Context, o Options, from int64) iter.Seq2[stream.Stored, error] {
	return Read(ctx, o, from, func() (int64, bool) { return o.After, true })
}

// Options say where a session's messages are kept. DB, Guild and SessionID must be set.
// Who opens a transcript or recovers one holds the session's lock.
type Options struct {
	DB        *store.Store
	Guild     string // the guild's database; it may be missing
	SessionID string

	After int64 // the last number that the session is known to have used; 0 if none is

	MemoryMax int64         // bytes held while the database takes nothing; 64 MiB if 0
	ShowEvery time.Duration // the shortest time between two writes of the guild's row; 2 s if 0

	// Log is told in a line of what goes wrong and when it is over. It must not call
	// the store. It may be nil.
	Log func(string)
}

func (o Options) withDefaults() Options {
	if o.MemoryMax <= 0 {
		o.MemoryMax = 64 << 20
	}
	if o.ShowEvery <= 0 {
		o.ShowEvery = 2 * time.Second
	}
	if o.Log == nil {
		o.Log = func(string) {}
	}
	return o
}

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
