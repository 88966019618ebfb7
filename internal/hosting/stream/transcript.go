package stream

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"time"

	"heartbeat/internal/hosting/store"
)

// pollEvery is how often a reader polls a running session for more messages.
const pollEvery = 200 * time.Millisecond

// ReadTranscript returns a session's messages from a number on, in order and without gaps, including those that
// are still to come. It ends once over reports the end, with the last number used, or with the error of ctx. The
// session keeps no state for a reader, so there may be any number of slow ones.
func ReadTranscript(ctx context.Context, o TranscriptOptions, from int64, over func() (last int64, over bool)) iter.Seq2[Stored, error] {
	return func(yield func(Stored, error) bool) {
		for n := max(from, 1); ; {
			last, ended := over() // asked first: all messages of an ended session are stored
			for {
				m, found, err := o.DB.At(ctx, o.SessionID, n)
				if err != nil {
					yield(Stored{}, err)
					return
				}
				there := last + 1 // messages missing before it are lost
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

// ReadEndedTranscript returns the messages, from a number on, of a session to which no host adds any more.
func ReadEndedTranscript(ctx context.Context, o TranscriptOptions, from int64) iter.Seq2[Stored, error] {
	return ReadTranscript(ctx, o, from, func() (int64, bool) { return o.After, true })
}

// TranscriptOptions say where a session's messages are stored. DB, Guild and SessionID are required. Only the
// holder of the session's lock may open a transcript.
type TranscriptOptions struct {
	DB        *store.Store
	Guild     string // the guild's database; it may be missing
	SessionID string

	After int64 // the last number that the session is known to have used, 0 for none

	MemoryMax int64         // bytes held while the database takes nothing; 64 MiB if 0
	ShowEvery time.Duration // the shortest time between two writes of the guild's row; 2 s if 0

	// Log, unless nil, gets a line when a problem begins and when it ends. It must not call the transcript.
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

// TranscriptHealth is the state of a transcript.
type TranscriptHealth struct {
	Last    int64  // the number of the last message
	Lost    int64  // messages for which there was no room
	Trouble string // in a sentence; empty for none
}

func (s *Transcript) Health() TranscriptHealth {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := TranscriptHealth{Last: s.last, Lost: s.lost}
	var troubles []string
	if err := s.keeps.err; err != nil {
		troubles = append(troubles, fmt.Sprintf("the host's database takes no messages since %s, and %d wait in memory (%v)",
			s.keeps.since.Format(time.TimeOnly), len(s.held), err))
	}
	if err := s.shows.err; err != nil {
		troubles = append(troubles, fmt.Sprintf("the transcript cannot be written to the guild's table since %s, and is tried again (%v)",
			s.shows.since.Format(time.TimeOnly), err))
	}
	if s.lost > 0 {
		troubles = append(troubles, fmt.Sprintf("%d messages are lost, since there was no room for them", s.lost))
	}
	h.Trouble = strings.Join(troubles, "; ")
	return h
}
