package page

import (
	"errors"

	"github.com/spf13/pflag"

	"heartbeat/internal/cli"
)

// Status is a look at a stream and its agents.
type Status struct {
	OnStream
	Color string
}

func statusVerb(do Actions) cli.Verb {
	return cli.Verb{
		Name:  "status",
		Short: "show what waits, what each agent works on, and why nothing moves",
		Long: `Show how many messages the stream holds, how many of them agents have, how old the
oldest is, how many dead letters there are, and for each agent what it works on,
since when, when that made progress, and when the agent was last seen. Ages go by
the server's clock, whatever the agents' clocks show. The last sentence says why
nothing moves, or what is being waited for.

Exit status: 0 shown, 1 the server cannot be reached or asked, and the sentence
says why.`,
		Example: `heartbeat-nats status
heartbeat-nats status --json | jq -r .why`,
		Build: func() (*pflag.FlagSet, cli.Action) {
			var o Status
			f := cli.NewFlags("status")
			o.addStream(f)
			addColor(f, &o.Color)
			o.add(f)
			return f, func(args []string, s cli.Streams) error {
				if err := errors.Join(cli.NoArgs(args), usage(o.check(f))); err != nil {
					return err
				}
				return do.Status(&o, s)
			}
		},
	}
}

// Metrics are figures of a stream.
type Metrics struct {
	OnStream
	Output string
}

func metricsVerb(do Actions) cli.Verb {
	return cli.Verb{
		Name:  "metrics",
		Short: "print figures for Prometheus",
		Long: `Print how many messages wait, are worked on and were settled, and what the agents
do, in the text format that Prometheus reads. With --output the figures take a
file's place at once, for the textfile collector.

Exit status: 0 printed or written, 1 not.`,
		Example: `heartbeat-nats metrics
heartbeat-nats metrics --output /var/lib/node_exporter/heartbeat_nats.prom`,
		Build: func() (*pflag.FlagSet, cli.Action) {
			var o Metrics
			f := cli.NewFlags("metrics")
			o.addStream(f)
			f.StringVar(&o.Output, "output", "", "write them to this `file`, whole or not at all")
			o.add(f)
			return f, func(args []string, s cli.Streams) error {
				err := o.check(f)
				if f.Changed("output") && o.Output == "" {
					err = errors.New("--output is empty: name a file, or leave the flag out")
				}
				if err := errors.Join(cli.NoArgs(args), usage(err)); err != nil {
					return err
				}
				return do.Metrics(&o, s)
			}
		},
	}
}
