package main

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"heartbeat/cmd/heartbeat-stop/exposition"
)

type metricsFlags struct {
	inboxFlags
	output string
}

func metricsVerb() verb {
	return verb{
		name:  "metrics",
		short: "print figures for Prometheus",
		long: `Print what waits, what is in flight and what was counted so far, in the text
format that Prometheus reads. With --output the figures take a file's place at
once, for the textfile collector; give each inbox a file of its own. The counters
count since the inbox's journal began, whatever is trimmed or rotated.

Exit status: 0 printed or written, 1 not.`,
		example: `heartbeat-stop metrics --inbox work/inbox.jsonl
heartbeat-stop metrics --inbox /srv/agent/inbox.jsonl --output /var/lib/node_exporter/heartbeat.prom`,
		build: func() (*pflag.FlagSet, action) {
			var o metricsFlags
			f := newFlags("metrics")
			o.add(f)
			f.StringVar(&o.output, "output", "", "write them to this `FILE`, whole or not at all")
			return f, func(args []string, s streams) error {
				if err := noArgs(args); err != nil {
					return err
				}
				if f.Changed("output") && o.output == "" {
					return usageError{fmt.Errorf("--output is empty: name a file, or leave the flag out")}
				}
				return o.run(s)
			}
		},
	}
}

func (o *metricsFlags) run(s streams) error {
	o.stay = o.output != ""
	box, err := o.look(s)
	if err != nil {
		return err
	}
	figures, err := exposition.Gather(context.Background(), box, time.Now())
	if err != nil {
		return fmt.Errorf("metrics: %w", err)
	}
	s.warn(figures.Warnings)
	content := figures.Text()
	if o.json {
		var b bytes.Buffer
		if err := printJSON(&b, figures); err != nil {
			return err
		}
		content = b.Bytes()
	}
	if o.output == "" {
		_, err = s.out.Write(content)
	} else {
		err = exposition.WriteFile(o.output, content)
	}
	if err != nil {
		return fmt.Errorf("metrics: %w", err)
	}
	return nil
}
