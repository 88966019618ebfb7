package verbs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"heartbeat/internal/fleet/message"
	"heartbeat/internal/fleet/upstream"
)

// outcome is what became of a message, as --json prints it.
type outcome struct {
	upstream.Record
	Detail string `json:"detail,omitempty"`
	// Reply is the text of the answer.
	Reply *string `json:"reply,omitempty"`
	// By is the agent that was first, if this answer was not.
	By string `json:"by,omitempty"`
}

// decision returns the decision about a message, or nil.
func (o *common) decision(ctx context.Context, kv jetstream.KeyValue, id string) (*upstream.Record, error) {
	e, err := kv.Get(ctx, message.Key(id))
	switch {
	case errors.Is(err, jetstream.ErrKeyNotFound):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read what became of the message %q: %w", id, o.said(err))
	}
	return parsed(e, upstream.ParseRecord)
}

// parsed reads a value. The error says where it is.
func parsed[T any](e jetstream.KeyValueEntry, parse func([]byte) (T, error)) (T, error) {
	v, err := parse(e.Value())
	if err != nil {
		err = fmt.Errorf("the key %s of the bucket %s: %w", e.Key(), e.Bucket(), err)
	}
	return v, err
}

// answered adds the text of the answer to a decision.
func (o *common) answered(ctx context.Context, kv jetstream.KeyValue, id string, r *upstream.Record) (*outcome, error) {
	if r.Outcome != upstream.WasAnswered {
		return &outcome{Record: *r}, nil
	}
	e, err := kv.Get(ctx, message.AnswerKey(id, r.Agent))
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return nil, fmt.Errorf("the message %q was answered by %s, and the text of that is no longer kept in the bucket %s", id, r.Agent, kv.Bucket())
	}
	if err != nil {
		return nil, fmt.Errorf("read the answer to the message %q: %w", id, o.said(err))
	}
	a, err := parsed(e, upstream.ParseAnswer)
	if err != nil {
		return nil, err
	}
	text, err := o.replyOf(ctx, a)
	return &outcome{Record: *r, Reply: &text}, err
}

// replyOf returns the text of an answer, wherever it is.
func (o *common) replyOf(ctx context.Context, a upstream.Answer) (text string, err error) {
	text, err = upstream.Reply(ctx, o.c.JS, o.stream, a)
	return text, o.said(err)
}

// isSecond reports whether a value is an answer that was not the first.
func isSecond(e jetstream.KeyValueEntry) bool { return strings.HasPrefix(e.Key(), "superseded.") }

// mark names the outcome in a value. It stays the same when a decision is written again with another state.
func mark(e jetstream.KeyValueEntry) string {
	r, err := upstream.ParseRecord(e.Value())
	if err != nil || isSecond(e) {
		return e.Key() + " " + e.Created().String()
	}
	return fmt.Sprint(e.Key(), " ", r.Outcome, " ", r.Again)
}

// kept is what a bucket holds.
type kept struct {
	values []jetstream.KeyValueEntry // the oldest first
	last   uint64                    // the bucket's last revision
	now    time.Time                 // by the server's clock
}

// last returns the count values under keys of a pattern that were written last, 0 for all. It reads the bucket from
// near its end, since there may be many results.
func (o *results) last(ctx context.Context, pattern string, count int) (kept, error) {
	found, err := o.find(ctx, "KV_"+message.Bucket(o.stream))
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
func (o *results) between(ctx context.Context, pattern string, start uint64) (all []jetstream.KeyValueEntry, err error) {
	last := map[string]uint64{} // a key may be written again meanwhile
	err = o.watch(ctx, o.kv, []string{pattern}, func(e jetstream.KeyValueEntry) (bool, error) {
		if e == nil {
			return true, nil
		}
		last[e.Key()] = e.Revision()
		if e.Operation() == jetstream.KeyValuePut {
			all = append(all, e)
		}
		return false, nil
	}, jetstream.ResumeFromRevision(max(start, 1)))
	return slices.DeleteFunc(all, func(e jetstream.KeyValueEntry) bool { return last[e.Key()] != e.Revision() }), err
}
