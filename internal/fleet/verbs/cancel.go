package verbs

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/spf13/pflag"

	"heartbeat/internal/cli"
	"heartbeat/internal/fleet/message"
	"heartbeat/internal/fleet/upstream"
	"heartbeat/internal/words"
)

type cancel struct {
	common
	ids []string
}

// canceled is what cancel prints with --json.
type canceled struct {
	ID     string `json:"id"`
	Stream string `json:"stream"`
	Seq    uint64 `json:"seq"`
	With   string `json:"with,omitempty"` // the agent that has it
}

func cancelVerb() cli.Verb {
	return cli.Verb{
		Name:  "cancel",
		Args:  "ID...",
		Short: "have nobody work on a message any more",
		Long: `Decide that a message is dead, for the reason "canceled". No agent begins with it
from then on: where it waits it is taken off the stream when its turn comes, and from
an agent's inbox within a third of AckWait. A session that works on it already goes
on, and its answer is kept as superseded and sent to nobody. There is no dead letter;
who waits for the message is told.

ID is the message's id, or its place, as in WORK:7.

Exit status: 0 it is canceled, or was; 1 not: it is not in the stream, or was
answered or set aside before.`,
		Example: "heartbeat-nats cancel job-17",
		Build: func(f *pflag.FlagSet) cli.Action {
			var o cancel
			o.begin(f)
			return o.action(f, "cancel", func(args []string) error {
				if o.ids = args; len(args) == 0 {
					return errors.New("name the message: heartbeat-nats cancel ID")
				}
				return nil
			}, func(ctx context.Context) error {
				up, err := upstream.Open(ctx, o.c.JS, o.stream)
				if err != nil {
					return o.explain(err)
				}
				return forEach(o.s, o.ids, func(id string) error { return o.cancel(ctx, up, id) })
			})
		},
	}
}

func (o *cancel) cancel(ctx context.Context, up *upstream.Upstream, id string) error {
	c, err := o.find(ctx, up, id)
	if err != nil {
		return err
	}
	known, with, err := up.Cancel(ctx, c)
	switch {
	case err != nil:
		return o.explain(err)
	case known != nil && known.Outcome == upstream.WasAnswered:
		return fmt.Errorf("the message %q was answered by %s before", c.ID, known.Agent)
	case known != nil && known.Reason != upstream.Canceled:
		return fmt.Errorf("the message %q became a dead letter before: %s", c.ID, words.Line(known.Reason))
	}
	sentence := "canceled " + words.Brief(c.ID)
	if with != "" {
		sentence += fmt.Sprintf(": agent %s has it: if its session works on it, what that answers is kept as superseded", words.Brief(with))
	}
	return o.report(canceled{ID: c.ID, Stream: o.stream, Seq: c.Seq, With: with}, sentence)
}

// find finds a message by its id or place. A server has no list of ids, so find reads the stream, and then the lease.
func (o *cancel) find(ctx context.Context, up *upstream.Upstream, id string) (c upstream.Claim, err error) {
	m, is, err := o.sent(ctx, up.Stream, id)
	if err == nil {
		c.Message = message.Message{ID: is, Seq: m.Sequence, Stored: m.Time, Again: message.AgainOf(m.Header)}
		return c, nil
	}
	if !errors.Is(err, jetstream.ErrMsgNotFound) {
		return c, fmt.Errorf("look for the message %q: %w", id, err)
	}
	// It may be settled, or deleted while an agent works on it.
	if c, held, err := up.Held(ctx, id); err != nil || held {
		return c, o.explain(err)
	}
	return c, fmt.Errorf("the message %q is not in the stream %s: it was settled, or never sent", id, o.stream)
}
