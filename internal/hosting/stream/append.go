package stream

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"time"
)

// Transcript stores every message of one session in the host's database, and copies the conversation to
// the guild's, which other programs use too. All methods are safe for concurrent use.
//
// [Transcript.Append] commits a message before it returns, so the message survives a kill; a power loss
// may take the last seconds. A goroutine of its own writes the guild's row now and then, so a lock on the
// guild's database delays nothing else.
type Transcript struct {
	o TranscriptOptions

	mu      sync.Mutex
	last    int64         // the number of the last message
	stored  int64         // the number of the last message in the database
	held    []Stored      // messages that are not in the database yet
	holding int64         // bytes of held
	lost    int64         // messages for which there was no room
	changed chan struct{} // gets a value after a commit was tried
	ended   bool          // no more messages are taken
	keeps   trouble       // of the host's database
	shows   trouble       // of the guild's

	saving  sync.Mutex // held while messages are committed
	showing sync.Mutex // held while the guild's row is written
	shown   int64      // the number of the last message in the row
	work    context.Context
	stop    context.CancelFunc
	stopped sync.WaitGroup
}

// OpenTranscript opens the transcript of a session that [store.Store.Begin] has recorded.
func OpenTranscript(ctx context.Context, o TranscriptOptions) (*Transcript, error) {
	o.MemoryMax, o.ShowEvery = cmp.Or(o.MemoryMax, 64<<20), cmp.Or(o.ShowEvery, 2*time.Second)
	if o.Log == nil {
		o.Log = func(string) {}
	}
	s := &Transcript{o: o, changed: make(chan struct{}, 1)}
	last, _, err := o.DB.Last(ctx, o.SessionID)
	if err != nil {
		return nil, err
	}
	s.last, s.stored = max(last, o.After), max(last, o.After)
	s.work, s.stop = context.WithCancel(context.Background())
	s.stopped.Go(s.tend)
	return s, nil
}

// Append numbers and commits a message. The caller must not change m.Raw afterwards. While the database takes nothing,
// Append holds the message in memory. Without room there, or after [Transcript.Flush], the message is lost, and readers
// get a stand-in.
func (s *Transcript) Append(m Message) int64 {
	at := time.Now().UTC().Truncate(time.Millisecond)
	size := int64(len(m.Raw))
	s.mu.Lock()
	s.last++
	n, fails := s.last, s.keeps.err != nil
	lost := s.ended || fails && len(s.held) > 0 && s.holding+size > s.o.MemoryMax
	if lost {
		s.lost++
	} else {
		s.held = append(s.held, Stored{N: n, At: at, Type: m.Type, Content: m.Raw})
		s.holding += size
	}
	s.mu.Unlock()
	if !lost && !fails {
		_ = s.commit(s.work) // Health shows the error
	}
	return n
}

const (
	firstPause = 100 * time.Millisecond
	lastPause  = 10 * time.Second
	// restAfterShow is the shortest pause between two writes of the guild's row, as a multiple of the
	// time that the last write took: a longer session has a larger row.
	restAfterShow = 20
)

// tend commits held messages once the database takes them again, and now and then writes the guild's row.
func (s *Transcript) tend() {
	pause, shows := firstPause, time.Time{}
	for {
		s.mu.Lock()
		fails, due := s.keeps.err != nil, s.stored > s.shown
		s.mu.Unlock()
		var now <-chan time.Time
		switch {
		case fails:
			now = time.After(pause)
		case due:
			now = time.After(time.Until(shows))
		}
		select {
		case <-now:
		case <-s.changed:
			continue
		case <-s.work.Done():
			return
		}
		if fails {
			if pause = min(2*pause, lastPause); s.commit(s.work) == nil { // otherwise Health shows the error
				pause = firstPause
			}
			continue
		}
		began, rest := time.Now(), s.o.ShowEvery
		if s.Show(s.work) == nil { // otherwise Health shows the error
			rest = max(rest, restAfterShow*time.Since(began))
		}
		shows = time.Now().Add(rest)
	}
}

const (
	maxBatch      = 256
	maxBatchBytes = 4 << 20
	large         = 2 * maxBatchBytes // a batch of one large message
)

func (s *Transcript) commit(ctx context.Context) error {
	s.saving.Lock()
	defer s.saving.Unlock()
	for {
		s.mu.Lock()
		n, size := 0, int64(0)
		for n < len(s.held) && n < maxBatch && size < maxBatchBytes {
			size += int64(len(s.held[n].Content))
			n++
		}
		batch := s.held[:n:n]
		s.mu.Unlock()
		if n == 0 {
			return nil
		}
		err := s.o.DB.Append(ctx, s.o.SessionID, batch)
		if err != nil && ctx.Err() != nil {
			return err // this says nothing about the database
		}
		s.mu.Lock()
		s.keeps.set(err, s.o.Log, "the host's database takes no messages, they wait in memory", "the host's database takes messages again")
		if err == nil {
			s.stored = batch[n-1].N
			s.held, s.holding = slices.Clone(s.held[n:]), s.holding-size
		}
		s.mu.Unlock()
		select {
		case s.changed <- struct{}{}:
		default:
		}
		if err != nil {
			return err
		}
		if size >= large {
			clear(batch)
			debug.FreeOSMemory() // the session may go on for hours with small messages
		}
	}
}

// Flush commits the held messages, and has [Transcript.Append] take no more. After an error, call it again.
func (s *Transcript) Flush(ctx context.Context) error {
	s.mu.Lock()
	s.ended = true
	left := len(s.held)
	s.mu.Unlock()
	if err := s.commit(ctx); err != nil {
		return fmt.Errorf("%d messages are in memory alone: %w", left, err)
	}
	return nil
}

// Show writes the guild's row.
func (s *Transcript) Show(ctx context.Context) error {
	s.showing.Lock()
	defer s.showing.Unlock()
	s.mu.Lock()
	stored := s.stored
	s.mu.Unlock()
	err := s.o.DB.Show(ctx, s.o.SessionID, s.o.Guild)
	s.mu.Lock()
	defer s.mu.Unlock()
	if stopped := ctx.Err(); err != nil && stopped != nil && (s.shows.err != nil || errors.Is(stopped, context.Canceled)) {
		return err // the error of an attempt that was not cut short says more
	}
	s.shows.set(err, s.o.Log, "the transcript cannot be written to the guild's table, and is tried again", "the transcript is written to the guild's table again")
	if err == nil {
		s.shown = stored
	}
	return err
}

// Close ends the transcript. What was not flushed is lost.
func (s *Transcript) Close() {
	s.stop()
	s.stopped.Wait()
}

// lost returns the stand-in for a message that is gone.
func lost(n int64) Stored {
	m := StandIn(SubtypeLost, 0)
	return Stored{N: n, At: time.Now().UTC().Truncate(time.Millisecond), Type: m.Type, Content: m.Raw}
}
