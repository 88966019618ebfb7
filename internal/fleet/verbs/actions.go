package verbs

import (
	"context"
	"errors"
	"fmt"

	"heartbeat/internal/cli"
	"heartbeat/internal/fleet/link"
	"heartbeat/internal/fleet/page"
)

// actions are what the verbs do.
var actions = page.Actions{
	Setup: named("setup", setup), Agent: named("agent", runAgent),
	Send: named("send", send), Results: named("results", results),
	Status: named("status", status), Metrics: named("metrics", metrics), Drain: named("drain", drain),
	DeadList: named("dead list", deadList), DeadShow: named("dead show", deadShow),
	DeadRequeue: named("dead requeue", deadRequeue), DeadPurge: named("dead purge", deadPurge),
}

// named has errors begin with the verb.
func named[O any](verb string, act func(O, cli.Streams) error) func(O, cli.Streams) error {
	return func(o O, s cli.Streams) error {
		if err := act(o, s); err != nil {
			return fmt.Errorf("%s: %w", verb, err)
		}
		return nil
	}
}

// connected runs a verb with a connection to the server that its flags name.
func connected(ctx context.Context, to *link.Flags, verb string, s cli.Streams, act func(*link.Conn) error) error {
	c, err := link.Connect(ctx, to, link.Options{Name: page.CommandName + " " + verb, Say: func(sentence string) { s.Note("%s", sentence) }})
	if err != nil {
		return err
	}
	return errors.Join(act(c), c.Close())
}
