package stream

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"time"

	"heartbeat/internal/hosting/store"
)

// pollEvery is how often a running session is checked for more messages.
const pollEvery = 200 * time.Millisecond

// ReadTranscript returns a session's messages from a number on, in order and without gaps, including later
// ones. It ends when over says that no more come, with the last number used, or when ctx is done,
// with the error of ctx. No state is kept for a reader, so there may be any number of slow ones.
func ReadTranscript(ctx context.Context, o TranscriptOptions, from int64, over func() (last int64, over bool)) iter.Seq2[Stored, error] {
	return func(yield func(Stored, error) bool) {
		for n := max(from, 1); ; {
			last, ended := over() // what came until then is there
			for {
				m, found, err := o.DB.At(ctx, o.SessionID, n)
				if err != nil {
					yield(Stored{}, err)
					return
				}
				there := last + 1 // what is missing before it is lost
				if found {
					there = m.N
				} else if !ended {
					break
				}
				for ; n < there; n++ {
					if !yield(lost(n), nil) {
						return
					}
				}
				if n++; !found || !yield(m, nil) {
					return
				}
			}
			select {
			case <-time.After(pollEvery):
			case <-ctx.Done():
				yield(Stored{}, ctx.Err())
				return
			}
		}
	}
}

// ReadEndedTranscript returns the messages, from a number on, of a session that no host keeps any more.
func ReadEndedTranscript(ctx context.Context, o TranscriptOptions, from int64) iter.Seq2[Stored, error] {
	return ReadTranscript(ctx, o, from, func() (int64, bool) { return o.After, true })
}

// TranscriptOptions say where a session's messages are kept. DB, Guild and SessionID are required. Whoever
// opens or recovers a transcript must hold the session's lock.
type TranscriptOptions struct {
	DB        *store.Store
	Guild     string // the guild's database; it may be missing
	SessionID string

	After int64 // the last number that the session is known to have used; 0 if none is

	MemoryMax int64         // bytes held while the database takes nothing; 64 MiB if 0
	ShowEvery time.Duration // the shortest time between two writes of the guild's row; 2 s if 0

	// Log, unless nil, gets a line when a problem begins and when it ends. It must not call the store.
	Log func(string)
}

type trouble struct {
	err   error // nil without trouble
	since time.Time
}

// set records that something fails or works again, and logs a change.
func (t *trouble) set(err error, log func(string), fails, works string) {
	switch was := t.err; {
	case was == nil && err != nil:
		t.since = time.Now()
		log(fails + ": " + err.Error())
	case was != nil && err == nil:
		log(fmt.Sprintf("%s, as they were not since %s (%v)", works, t.since.Format(time.TimeOnly), was))
	}
	t.err = err
}

// TranscriptHealth is the state of a store.
type TranscriptHealth struct {
	Last    int64  // the number of the last message
	Lost    int64  // messages for which there was no room
	Trouble string // in a sentence; empty for none
}

// Health returns the store's state.
func (s *Transcript) Health() TranscriptHealth {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := TranscriptHealth{Last: s.last, Lost: s.lost}
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
