package transcript

import (
	"context"
	"iter"
	"time"

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
