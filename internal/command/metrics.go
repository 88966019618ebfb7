package command

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"heartbeat/internal/cli"
	"heartbeat/internal/cli/program"
	"heartbeat/internal/command/metrics"
)

type metricsFlags struct {
	cli.InboxFlags
	output string
}

func metricsVerb() cli.Verb {
	return cli.Verb{
		Name:  "metrics",
		Short: "print figures for Prometheus",
		Long: `Print what waits, what is in flight and what was counted so far, in the text
format that Prometheus reads. With --textfile the figures take a file's place at
once, for the textfile collector; give each inbox a file of its own. The counters
count since the inbox's journal began, whatever is trimmed or rotated.

Exit status: 0 printed or written, 1 not.`,
		Example: `heartbeat metrics
heartbeat metrics --inbox /srv/agent/inbox.jsonl --textfile /var/lib/node_exporter/heartbeat.prom`,
		Build: func() (*pflag.FlagSet, cli.Action) {
			var o metricsFlags
			f := cli.NewFlags("metrics")
			o.Add(f)
			f.Var(cli.Named(&o.output, "name a file, or leave the flag out"), "textfile", "write them to this `file`, whole or not at all")
			cli.Was(f, "textfile", "output")
			return f, func(args []string, s cli.Streams) error {
				if err := cli.NoArgs(args); err != nil {
					return err
				}
				return o.run(s)
			}
		},
	}
}

func (o *metricsFlags) run(s cli.Streams) error {
	o.Stay = o.output != ""
	box, err := o.Look(s)
	if err != nil {
		return err
	}
	figures, err := metrics.Gather(context.Background(), box, time.Now())
	if err != nil {
		return fmt.Errorf("metrics: %w", err)
	}
	s.Warn(figures.Warnings)
	content := figures.Text()
	if o.JSON {
		var b bytes.Buffer
		if err := cli.PrintJSON(&b, figures); err != nil {
			return err
		}
		content = b.Bytes()
	}
	if o.output == "" {
		_, err = s.Out.Write(content)
	} else {
		err = program.WriteFigures(o.output, content)
	}
	if err != nil {
		return fmt.Errorf("metrics: %w", err)
	}
	return nil
}
