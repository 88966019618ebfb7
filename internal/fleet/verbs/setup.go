package verbs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"heartbeat/internal/cli"
	"heartbeat/internal/fleet/setup"
)

func setupVerb() cli.Verb {
	return cli.Verb{
		Name:  "setup",
		Short: "make the stream and what belongs to it, or say what differs",
		Long: `Make what agents need on a server: the stream as a work queue in files, a
durable pull consumer, the buckets of results and of agents, the stream of dead
letters, and the store of long replies. What is there already stays, with all it
holds. Where it differs from the flags that are given, setup says how, and changes
what a server can change.

It refuses what cannot work, and then changes nothing: a stream with another
retention, a mirror, a consumer that acknowledges otherwise, subjects that
overlap.

One consumer of all subjects serves agents that take any work. For agents that
take only some, name their subjects with --for, once for each: in a work queue a
message belongs to one consumer, so these may not overlap.

With --dry-run nothing is changed.

Exit status: 0 all is as asked (with --dry-run: it could be made so); 1 it is not.`,
		Example: `heartbeat-nats setup --stream WORK --subjects 'work.>'
heartbeat-nats setup --for work.review --for 'work.build.>' --dry-run
heartbeat-nats setup --ack-wait 30s --max-deliver 3 --keep-results 90d`,
		Verbs: []cli.Verb{setupAgentVerb()},
		Build: func(f *pflag.FlagSet) cli.Action {
			var o common
			var dryRun bool
			w := &setup.Wanted{
				MaxDeliver: setup.DefaultMaxDeliver, AckWait: setup.DefaultAckWait, Duplicates: 2 * time.Minute,
				KeepResults: 30 * 24 * time.Hour, Given: map[string]bool{},
			}
			o.begin(f)
			f.StringArrayVar(&w.Subjects, "subjects", nil, "`subject` that the stream takes; may be repeated (default: the stream's name in small letters and .>, or what it takes already)")
			f.StringArrayVar(&w.For, "for", nil, "make a consumer for this `subject` alone, in place of one for all; may be repeated")
			f.Var(cli.AtLeast(&w.MaxDeliver, 1), "max-deliver", "how many attempts a message gets before it is a dead letter")
			f.Var((*cli.Span)(&w.AckWait), "ack-wait", "after how long without a sign of life a message goes to another agent")
			f.Var((*cli.Span)(&w.Duplicates), "duplicates", "for how long the server drops a message whose id it has seen")
			f.Var((*cli.Span)(&w.KeepResults), "keep-results", "for how long results are kept (0: for ever). An id that is sent again within it is not worked on again")
			f.Lookup("keep-results").DefValue = "30d"
			f.Var((*cli.Span)(&w.KeepDead), "keep-dead", "for how long dead letters are kept (0: for ever)")
			f.IntVar(&w.Replicas, "replicas", 1, "on how many servers of a cluster all is kept: 1, 3 or 5")
			f.BoolVar(&dryRun, "dry-run", false, "only say what would be done")
			return o.action(f, "setup", func(args []string) error {
				f.VisitAll(func(given *pflag.Flag) { w.Given[given.Name] = given.Changed })
				switch {
				case slices.Contains(w.Subjects, "") || slices.Contains(w.For, ""):
					return errors.New("a subject is empty: name it, or leave the flag out")
				case w.Replicas != 1 && w.Replicas != 3 && w.Replicas != 5:
					return fmt.Errorf("--replicas is %d: it takes 1, or 3 or 5, of which one or two servers may be lost", w.Replicas)
				}
				w.Stream = o.stream
				return cli.NoArgs(args)
			}, func(ctx context.Context) error { return o.setUp(ctx, w, dryRun) })
		},
	}
}

// did spells the action of a step: as done, and as planned.
var did = map[string][2]string{
	setup.Create: {"made", "would make"},
	setup.Change: {"changed", "would change"},
	setup.Remove: {"removed", "would remove"},
	setup.Keep:   {"kept", "would keep"},
}

func (o *common) setUp(ctx context.Context, w *setup.Wanted, dryRun bool) error {
	tense := 1
	plan, err := setup.Make(ctx, o.c.JS, w)
	if err == nil && !dryRun {
		tense, err = 0, plan.Apply(ctx)
	}
	if err != nil {
		return o.explain(err)
	}
	for _, step := range plan.Steps {
		if o.json {
			err = cli.PrintJSON(o.s.Out, step)
		} else {
			line := fmt.Sprintf("%s %s %s (%s)", did[step.Action][tense], step.Kind, step.Name, step.Is)
			if len(step.Differs) > 0 {
				line += ": " + strings.Join(step.Differs, "; ")
			}
			_, err = fmt.Fprintln(o.s.Out, line)
			for _, note := range step.Notes {
				o.s.Note("%s %s: %s", step.Kind, step.Name, note)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}
