package verbs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"heartbeat/internal/fleet/names"
	"heartbeat/internal/fleet/settle"
)

// value is what a key of a bucket holds.
type value struct {
	key  string
	data []byte
	at   time.Time // by the server's clock
}

// isSecond reports whether it is an answer that was not the first.
func (v value) isSecond() bool { return strings.HasPrefix(v.key, "superseded.") }

// mark is the same for all values of one outcome: a decision is written again where the
// state of its reply or of its letter changes.
func (v value) mark() string {
	r, err := settle.ParseRecord(v.data)
	if err != nil || v.isSecond() {
		return v.key + " " + v.at.String()
	}
	return fmt.Sprint(v.key, " ", r.Outcome, " ", r.Again)
}

// kept is what a bucket holds.
type kept struct {
	values []value   // the oldest first
	last   uint64    // the bucket's last revision
	now    time.Time // by the server's clock
}

// last returns the values under keys of a pattern that were written last, 0 for all. It
// reads a bucket from near its end, since results may be many.
func (o *reading) last(ctx context.Context, pattern string, count int) (kept, error) {
	found, err := stream(ctx, o.c, "KV_"+names.Bucket(o.Stream))
	if err != nil {
		return kept{}, err
	}
	info := found.CachedInfo()
	k := kept{last: info.State.LastSeq, now: info.TimeStamp}
	from := info.State.FirstSeq
	for window := uint64(8 * count); ; window *= 4 {
		start := from
		if count > 0 && k.last > from+window {
			start = k.last - window
		}
		if k.values, err = o.between(ctx, pattern, start); err != nil {
			return k, err
		}
		if start == from || len(k.values) >= count {
			break
		}
	}
	if count > 0 && len(k.values) > count {
		k.values = k.values[len(k.values)-count:]
	}
	return k, nil
}

// between returns the values from a revision on.
func (o *reading) between(ctx context.Context, pattern string, start uint64) (all []value, err error) {
	watch, err := o.kv.Watch(ctx, pattern, jetstream.ResumeFromRevision(max(start, 1)))
	if err != nil {
		return nil, fmt.Errorf("read the bucket %s: %w", o.kv.Bucket(), said(o.c, err))
	}
	defer func() { _ = watch.Stop() }() // what it would still say is not needed
	at := map[string]int{}
	for {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case e, open := <-watch.Updates():
			switch {
			case !open:
				return nil, errors.Join(ctx.Err(), fmt.Errorf("read the bucket %s: the server ended that: try again", o.kv.Bucket()))
			case e == nil:
				return slices.DeleteFunc(all, func(v value) bool { return v.data == nil }), nil
			}
			if i, before := at[e.Key()]; before {
				all[i].data = nil // it was written again meanwhile
			}
			at[e.Key()] = len(all)
			v := value{key: e.Key(), at: e.Created()}
			if e.Operation() == jetstream.KeyValuePut {
				v.data = e.Value()
			}
			all = append(all, v)
		}
	}
}

// shownKeys remembers what was shown, the last ones.
type shownKeys struct {
	is   map[string]bool
	ring []string
	next int
}

func newShown(n int) *shownKeys { return &shownKeys{is: map[string]bool{}, ring: make([]string, n)} }

// add remembers a key, and reports whether it is new.
func (s *shownKeys) add(key string) bool {
	if s.is[key] {
		return false
	}
	delete(s.is, s.ring[s.next])
	s.ring[s.next], s.is[key] = key, true
	s.next = (s.next + 1) % len(s.ring)
	return true
}
