package verbs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"heartbeat/internal/cli"
	"heartbeat/internal/fleet/link"
	"heartbeat/internal/fleet/names"
	"heartbeat/internal/fleet/page"
	"heartbeat/internal/fleet/presence"
	"heartbeat/internal/words"
)

// drained is what drain prints with --json.
type drained struct {
	Agent string `json:"agent"`
	Drain bool   `json:"drain"`
	// Holds is how many messages the agent held when it was last seen.
	Holds    int       `json:"holds"`
	LastSeen time.Time `json:"last_seen"`
}

func drain(o *page.Drain, s cli.Streams) error {
	ctx, stop := untilSignal(o.Timeout)
	defer stop()
	return connected(ctx, &o.Link, "drain", s, func(c *link.Conn) error {
		var kv jetstream.KeyValue
		err := c.Again(ctx, func() (err error) {
			kv, err = bucket(ctx, c, o.Stream, names.Agents(o.Stream))
			return err
		})
		var d drained
		if err == nil {
			d, err = drainable(ctx, c, kv, o)
		}
		if err == nil {
			err = request(ctx, kv, o)
		}
		if err != nil {
			return notAsked(ctx, o, err)
		}
		if !o.Wait {
			return report(o.JSON, s, d, sentenceOf(o, d))
		}
		if err := untilEmpty(ctx, c, kv, o); err != nil {
			return err
		}
		d.Holds = 0
		return report(o.JSON, s, d, fmt.Sprintf("%s holds nothing more", o.Agent))
	})
}

// notAsked is why an agent could not be asked.
func notAsked(ctx context.Context, o *page.Drain, err error) error {
	if errors.Is(context.Cause(ctx), errTimedOut) {
		return cli.Status(cli.ExitTimedOut, fmt.Errorf("the server did not answer within %s, so it is not known whether %s was asked: %w", words.Took(o.Timeout), o.Agent, err))
	}
	return ended(ctx, err)
}

func sentenceOf(o *page.Drain, d drained) string {
	if o.Undo {
		return o.Agent + " may take messages again"
	}
	return fmt.Sprintf("%s is asked to drain: it holds %s", o.Agent, words.Count(d.Holds, "message", "messages"))
}

// drainable is the agent that is asked. One that nobody has heard of is refused: its name
// is wrong.
func drainable(ctx context.Context, c *link.Conn, kv jetstream.KeyValue, o *page.Drain) (drained, error) {
	e, err := kv.Get(ctx, names.Agent(o.Agent))
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return drained{}, unknownAgent(ctx, c, kv, o)
	}
	if err != nil {
		return drained{}, fmt.Errorf("look up the agent %q: %w", o.Agent, said(c, err))
	}
	a, err := presence.Parse(e.Value())
	if err != nil {
		return drained{}, fmt.Errorf("the key %s of the bucket %s: %w", e.Key(), e.Bucket(), err)
	}
	return drained{Agent: o.Agent, Drain: !o.Undo, Holds: len(a.Holds), LastSeen: e.Created()}, nil
}

func unknownAgent(ctx context.Context, c *link.Conn, kv jetstream.KeyValue, o *page.Drain) error {
	var all []string
	err := values(ctx, c, kv, []string{"agent.*"}, func(e jetstream.KeyValueEntry) {
		if a, err := presence.Parse(e.Value()); err == nil {
			all = append(all, a.Agent)
		}
	})
	if err != nil {
		return err
	}
	slices.Sort(all)
	there := "there is none"
	if len(all) > 0 {
		there = "there is " + listed(all)
	}
	return fmt.Errorf("no agent of the stream %s is called %q: %s", o.Stream, o.Agent, there)
}

// request puts the request down, or takes it back.
func request(ctx context.Context, kv jetstream.KeyValue, o *page.Drain) error {
	key := names.Drain(o.Agent)
	if o.Undo {
		if err := kv.Delete(ctx, key); err != nil {
			return fmt.Errorf("take the request back: %w", err)
		}
		return nil
	}
	value, err := json.Marshal(map[string]any{"agent": o.Agent, "at": time.Now().UTC()})
	if err == nil {
		_, err = kv.Put(ctx, key, value)
	}
	if err != nil {
		return fmt.Errorf("ask the agent: %w", err)
	}
	return nil
}

// untilEmpty waits until the agent says that it drains and holds nothing, or has ended.
func untilEmpty(ctx context.Context, c *link.Conn, kv jetstream.KeyValue, o *page.Drain) error {
	watch, err := kv.Watch(ctx, names.Agent(o.Agent), jetstream.IgnoreDeletes())
	if err != nil {
		return fmt.Errorf("watch the agent: %w", said(c, err))
	}
	defer func() { _ = watch.Stop() }() // the connection is about to end
	holds := "it has not been heard of since"
	for {
		select {
		case <-ctx.Done():
			if errors.Is(context.Cause(ctx), errTimedOut) {
				return cli.Status(cli.ExitTimedOut, fmt.Errorf("%s was not done within %s: %s; the request stays", o.Agent, words.Took(o.Timeout), holds))
			}
			return ended(ctx, ctx.Err())
		case e, open := <-watch.Updates():
			if !open {
				return errors.Join(ended(ctx, ctx.Err()), errors.New("the agent is no longer watched: the server or somebody ended that; the request stays"))
			}
			if e == nil {
				continue
			}
			a, err := presence.Parse(e.Value())
			switch {
			case err != nil:
				return err
			case len(a.Holds) == 0 && (a.Drain || a.Ended):
				return nil
			}
			holds = "it holds " + words.Count(len(a.Holds), "message", "messages")
			if len(a.Holds) > 0 {
				holds += ", " + strings.TrimSpace(words.Brief(a.Holds[0].ID)) + " among them"
			}
		}
	}
}
