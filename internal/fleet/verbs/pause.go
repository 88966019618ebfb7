package verbs

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"heartbeat/internal/cli"
	"heartbeat/internal/fleet/link"
	"heartbeat/internal/fleet/setup"
	"heartbeat/internal/words"
)

type pause struct {
	common
	length cli.Span // 0: until somebody resumes it
	undo   bool
}

// forever is the length of a pause that lasts until somebody ends it.
const forever = 100 * 365 * 24 * time.Hour

// halted is what pause and resume print with --json.
type halted struct {
	Stream    string     `json:"stream"`
	Consumers []string   `json:"consumers"`
	Until     *time.Time `json:"until,omitempty"`
}

func pauseVerb() cli.Verb {
	return pausing(cli.Verb{
		Name:  "pause",
		Short: "have the server hand out no messages",
		Long: `Have the server hand out no messages of the stream to any agent. What agents have
goes on, and what is sent waits. The pause ends with heartbeat-nats resume, or after
--for.

Exit status: 0 the stream is paused; 1 not.`,
		Example: `heartbeat-nats pause
heartbeat-nats pause --for 2h`,
	}, false)
}

func resumeVerb() cli.Verb {
	return pausing(cli.Verb{
		Name:    "resume",
		Short:   "have the server hand out messages again",
		Long:    "End a pause of the stream. Exit status: 0 messages are handed out; 1 they are not.",
		Example: "heartbeat-nats resume",
	}, true)
}

func pausing(v cli.Verb, undo bool) cli.Verb {
	v.Build = func(f *pflag.FlagSet) cli.Action {
		o := pause{undo: undo}
		o.begin(f)
		if !undo {
			f.Var(&o.length, "for", "end the pause after this time (seconds or a duration; 0: with resume)")
		}
		return o.action(f, v.Name, cli.NoArgs, o.run)
	}
	return v
}

func (o *pause) run(ctx context.Context) error {
	_, all, err := setup.Consumers(ctx, o.c.JS, o.stream)
	if err != nil {
		return o.explain(err)
	}
	h := halted{Stream: o.stream, Consumers: []string{}}
	var until time.Time // by the server's clock, as far as that is known
	for _, c := range all {
		if !setup.IsOurs(c) {
			continue
		}
		if !o.undo && until.IsZero() {
			until = c.TimeStamp.Add(cmp.Or(time.Duration(o.length), forever))
		}
		if _, err := o.c.JS.PauseConsumer(ctx, o.stream, c.Name, until); err != nil {
			return fmt.Errorf("%s the consumer %s: %w", map[bool]string{true: "resume", false: "pause"}[o.undo], c.Name, o.explain(err))
		}
		h.Consumers = append(h.Consumers, c.Name)
	}
	if o.length > 0 {
		h.Until = &until
	}
	switch {
	case len(h.Consumers) == 0:
		return fmt.Errorf("the stream %s has no consumer of agents: %s makes one", o.stream, setup.Command(o.c.JS, o.stream))
	case o.undo:
		return o.report(h, "messages are handed out again")
	case h.Until != nil:
		return o.report(h, "no messages are handed out until "+words.Stamp(until))
	}
	return o.report(h, "no messages are handed out until "+link.Typed(o.c.NATS, "resume", "--stream", o.stream))
}
