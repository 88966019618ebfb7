package command

import (
	"bytes"
	"context"
	"errors"
	"time"

	"github.com/spf13/pflag"

	"heartbeat/internal/cli"
	"heartbeat/internal/cli/program"
	"heartbeat/internal/command/metrics"
	"heartbeat/internal/watch"
)

type metricsFlags struct {
	cli.InboxFlags
	output string
}

var metricsVerb = cli.Verb{
	Name:  "metrics",
	Args:  "[FOLDER...]",
	Short: "print figures for Prometheus",
	Long: `Print what waits, what is in flight, what is wrong and what was counted so far, in
the text format that Prometheus reads: of one inbox, or of all that are found in
these folders and below them. With --textfile the figures replace a file atomically,
for the textfile collector. The counters count since the inbox's journal began,
whatever is trimmed or rotated. An inbox that cannot be read has heartbeat_trouble
alone.

Exit status: 0 printed or written, 1 not, or not of every inbox.`,
	Example: `heartbeat metrics
heartbeat metrics /srv
heartbeat metrics --inbox /srv/agent/inbox.jsonl --textfile /var/lib/node_exporter/heartbeat.prom`,
	Build: func(f *pflag.FlagSet) cli.Action {
		var o metricsFlags
		o.Add(f)
		f.Var(cli.Named(&o.output, "name a file, or leave the flag out"), "textfile", "write them to this `file`, whole or not at all")
		cli.AddAlias(f, "textfile", "output")
		return func(args []string, s cli.Streams) error {
			if len(args) > 0 && f.Changed("inbox") {
				return cli.Usage(errors.New("--inbox names one inbox, and folders are to be searched: give one or the other"))
			}
			return o.run(args, s)
		}
	},
}

func (o *metricsFlags) run(folders []string, s cli.Streams) error {
	all, unread := o.gather(folders, s)
	var b bytes.Buffer
	for _, figures := range all {
		s.Warn(figures.Warnings)
		if !o.JSON {
			continue
		}
		if err := cli.PrintJSON(&b, figures); err != nil {
			return err
		}
	}
	if !o.JSON {
		b.Write(metrics.Text(all))
	}
	var err error
	switch {
	case len(all) == 0: // an empty file would hide that
	case o.output == "":
		_, err = s.Out.Write(b.Bytes())
	default:
		err = program.WriteFigures(o.output, b.Bytes())
	}
	return wrap("metrics", errors.Join(unread, err))
}

func (o *metricsFlags) gather(folders []string, s cli.Streams) (all []metrics.Figures, err error) {
	o.Stay = o.output != ""
	if len(folders) == 0 {
		box, err := o.OpenRead(s)
		if err != nil {
			return nil, err
		}
		figures, err := metrics.Gather(context.Background(), box, time.Now())
		return []metrics.Figures{figures}, err
	}
	paths, failed, notes := watch.FindInboxes(folders)
	s.Warn(notes)
	for _, sentence := range failed {
		err = errors.Join(err, errors.New(sentence))
	}
	read, bad := metrics.GatherAll(context.Background(), paths, time.Now())
	return read, errors.Join(err, bad)
}
