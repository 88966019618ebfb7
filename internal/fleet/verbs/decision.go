package verbs

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"heartbeat/internal/fleet/link"
	"heartbeat/internal/fleet/names"
	"heartbeat/internal/fleet/settle"
)

// outcome is what became of a message, as --json prints it.
type outcome struct {
	settle.Record
	Detail string `json:"detail,omitempty"`
	// Reply is the text of the answer.
	Reply *string `json:"reply,omitempty"`
	// By is the agent that was first, where this answer was not.
	By string `json:"by,omitempty"`
}

// decision is what was decided about a message, nil if nothing was.
func decision(ctx context.Context, c *link.Conn, kv jetstream.KeyValue, id string) (*settle.Record, error) {
	e, err := kv.Get(ctx, names.Key(id))
	switch {
	case errors.Is(err, jetstream.ErrKeyNotFound):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read what became of the message %q: %w", id, said(c, err))
	}
	return parsed(e)
}

func parsed(e jetstream.KeyValueEntry) (*settle.Record, error) {
	r, err := settle.ParseRecord(e.Value())
	if err != nil {
		return nil, fmt.Errorf("the key %s of the bucket %s: %w", e.Key(), e.Bucket(), err)
	}
	return &r, nil
}

// answered adds the text of the answer to a decision.
func answered(ctx context.Context, c *link.Conn, kv jetstream.KeyValue, id string, r settle.Record) (*outcome, error) {
	o := &outcome{Record: r}
	if r.Outcome != settle.WasAnswered {
		return o, nil
	}
	e, err := kv.Get(ctx, names.Answer(id, r.Agent))
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return nil, fmt.Errorf("the message %q was answered by %s, and the text of that is no longer kept in the bucket %s", id, r.Agent, kv.Bucket())
	}
	if err != nil {
		return nil, fmt.Errorf("read the answer to the message %q: %w", id, said(c, err))
	}
	a, err := settle.ParseAnswer(e.Value())
	if err != nil {
		return nil, fmt.Errorf("the key %s of the bucket %s: %w", e.Key(), e.Bucket(), err)
	}
	text, err := replyOf(ctx, c, r.Stream, a)
	o.Reply = &text
	return o, err
}

// replyOf is the text of an answer, wherever it is.
func replyOf(ctx context.Context, c *link.Conn, stream string, a settle.Answer) (string, error) {
	if a.Object == "" {
		return a.Reply, nil
	}
	up, err := settle.New(c.JS, stream)
	if err != nil {
		return "", err
	}
	text, err := up.Reply(ctx, a)
	if err != nil {
		return "", said(c, err)
	}
	return text, nil
}
