package page

import (
	"errors"

	"github.com/spf13/pflag"

	"heartbeat/internal/cli"
)

// Results are what became of messages.
type Results struct {
	OnStream
	IDs        []string // replies in full, in place of the list
	Count      int      // 0: all
	Follow     bool
	Superseded bool
	Raw        bool
	Color      string
}

func resultsVerb(do Actions) cli.Verb {
	return cli.Verb{
		Name:  "results",
		Args:  "[ID...]",
		Short: "show what was answered, or one reply in full",
		Long: `Show the messages that were settled last, one a line: when, which, by which agent,
which attempt it was, and how the reply begins. With --follow it goes on with what
comes, until a signal ends it.

With ID it prints the reply in full. A terminal is shown it without what would
change more than the text; --raw shows that as well. A message that was sent without
an id may be named by its place in the stream, as in WORK:7.

Where two agents answered the same message, the first answer counts. The others
are kept, and shown with --superseded.

With --json a line has id, outcome, agent, entry_id, attempt, at, and reply.

Exit status: 0 shown; 1 not: there is no such message, or no answer yet, and the
sentence says where it is; 3 the message became a dead letter; 128+n signal n
ended the following.`,
		Example: `heartbeat-nats results job-7
heartbeat-nats results -n 100 --json | jq -r .reply
heartbeat-nats results --follow`,
		Build: func() (*pflag.FlagSet, cli.Action) {
			var o Results
			f := cli.NewFlags("results")
			o.addStream(f)
			f.IntVarP(&o.Count, "count", "n", 20, "show the last `N` (0: all)")
			f.BoolVar(&o.Follow, "follow", false, "go on with what comes")
			f.BoolVar(&o.Superseded, "superseded", false, "the answers that were not the first, in place of those that count")
			addRaw(f, &o.Raw)
			addColor(f, &o.Color)
			o.add(f)
			return f, func(args []string, s cli.Streams) error {
				o.IDs = args
				switch {
				case o.Count < 0:
					return cli.Usage(errors.New("-n is below 0: give how many, or 0 for all"))
				case len(args) > 0 && (o.Follow || f.Changed("count")):
					return cli.Usage(errors.New("-n and --follow are for the list: leave ID out, or wait for a message with heartbeat-nats send --id ID --wait"))
				case o.Raw && len(args) == 0:
					return cli.Usage(errors.New("--raw is about one reply in full: name the ID"))
				}
				if err := usage(o.check(f)); err != nil {
					return err
				}
				return do.Results(&o, s)
			}
		},
	}
}
