package page

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/pflag"

	"heartbeat/internal/cli"
)

// Setup is what is made on a server.
type Setup struct {
	OnStream
	Subjects    []string
	For         []string
	MaxDeliver  int
	AckWait     time.Duration
	Duplicates  time.Duration
	KeepResults time.Duration // 0: for ever
	KeepDead    time.Duration // 0: for ever
	Replicas    int
	DryRun      bool
	// Given are the names of the flags that were typed. What is there already is held
	// against these alone.
	Given map[string]bool
}

func setupVerb(do Actions) cli.Verb {
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
		Build: func() (*pflag.FlagSet, cli.Action) {
			o := Setup{}
			ack, window := cli.Span(time.Minute), cli.Span(2*time.Minute)
			results, dead := cli.Span(30*24*time.Hour), cli.Span(0)
			f := cli.NewFlags("setup")
			o.addStream(f)
			f.StringArrayVar(&o.Subjects, "subjects", nil, "`subject` that the stream takes; may be repeated (default: the stream's name in small letters and .>, or what it takes already)")
			f.StringArrayVar(&o.For, "for", nil, "make a consumer for this `subject` alone, in place of one for all; may be repeated")
			f.IntVar(&o.MaxDeliver, "max-deliver", 5, "how many attempts a message gets before it is a dead letter")
			f.Var(&ack, "ack-wait", "after how long without a sign of life a message goes to another agent")
			f.Var(&window, "duplicates", "for how long the server drops a message whose id it has seen")
			f.Var(&results, "keep-results", "for how long results are kept (0: for ever). An id that is sent again within it is not worked on again")
			f.Var(&dead, "keep-dead", "for how long dead letters are kept (0: for ever)")
			f.IntVar(&o.Replicas, "replicas", 1, "on how many servers of a cluster all is kept: 1, 3 or 5")
			f.BoolVar(&o.DryRun, "dry-run", false, "only say what would be done")
			o.add(f)
			f.Lookup("keep-results").DefValue = "30d"
			return f, func(args []string, s cli.Streams) error {
				o.Given = map[string]bool{}
				f.Visit(func(given *pflag.Flag) { o.Given[given.Name] = true })
				o.AckWait, o.Duplicates = time.Duration(ack), time.Duration(window)
				o.KeepResults, o.KeepDead = time.Duration(results), time.Duration(dead)
				if err := errors.Join(cli.NoArgs(args), usage(o.check(f))); err != nil {
					return err
				}
				return do.Setup(&o, s)
			}
		},
	}
}

func (o *Setup) check(f *pflag.FlagSet) error {
	switch {
	case slices.Contains(o.Subjects, "") || slices.Contains(o.For, ""):
		return errors.New("a subject is empty: name it, or leave the flag out")
	case o.MaxDeliver < 1:
		return fmt.Errorf("--max-deliver is %d: a message needs at least one attempt", o.MaxDeliver)
	case o.Replicas != 1 && o.Replicas != 3 && o.Replicas != 5:
		return fmt.Errorf("--replicas is %d: it takes 1, or 3 or 5, of which one or two servers may be lost", o.Replicas)
	}
	return o.OnStream.check(f)
}
