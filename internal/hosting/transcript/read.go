package transcript

import (
	"context"
	"iter"

	"heartbeat/internal/hosting/stream"
)

// Read returns the messages from a number on, in order and without gaps, and follows
// the session until its transcript is closed, or ctx is done: then the error is that of
// ctx. Nothing is kept for a reader, so there may be any number of slow ones.
func (s *Store) Read(ctx context.Context, from int64) iter.Seq2[stream.Stored, error] {
	return read(ctx, s.o, from, s.wait)
}

// wait returns up to which number there are messages, of n if that comes.
func (s *Store) wait(ctx context.Context, n int64) (last int64, err error) {
	for {
		s.mu.Lock()
		last, closed, changed := s.stored, s.closed, s.changed
		if len(s.held) == 0 {
			last = s.last // those behind it are lost
		}
		s.mu.Unlock()
		if last >= n || closed {
			return last, ctx.Err()
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
}

// ReadEnded returns the messages of a session that no host keeps any more, from a
// number on.
func ReadEnded(ctx context.Context, o Options, from int64) iter.Seq2[stream.Stored, error] {
	return func(yield func(stream.Stored, error) bool) {
		o := o.withDefaults()
		err := adopt(ctx, o, false)
		last, _, lastErr := o.DB.Last(ctx, o.SessionID)
		if lastErr != nil {
			err = lastErr
		}
		if err != nil {
			yield(stream.Stored{}, err)
			return
		}
		read(ctx, o, from, func(context.Context, int64) (int64, error) { return last, ctx.Err() })(yield)
	}
}

// read returns messages as far as wait says that there are any.
func read(ctx context.Context, o Options, from int64, wait func(context.Context, int64) (int64, error)) iter.Seq2[stream.Stored, error] {
	return func(yield func(stream.Stored, error) bool) {
		var next stream.Stored
		found := false
		for n := max(from, 1); ; n++ {
			last, err := wait(ctx, n)
			if err == nil && n > last {
				return
			}
			if err == nil && (!found || next.N < n) {
				next, found, err = o.DB.At(ctx, o.SessionID, n)
			}
			m := next
			if !found || next.N > n {
				m = lost(n)
			}
			if !yield(m, err) || err != nil {
				return
			}
		}
	}
}
