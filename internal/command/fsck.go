package command

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"heartbeat/internal/cli"
	"heartbeat/internal/command/doctor"
	"heartbeat/orchestrate"
)

type fsckFlags struct {
	cli.InboxFlags
	shownFlags
	repair bool
}

var fsckVerb = cli.Verb{
	Name:  "fsck",
	Short: "check that every entry is in one place",
	Long: `Check that the files beside an inbox fit together: that each entry waits, is in
flight, is scheduled, was answered or is a dead letter, and only one of these;
that no result stands beyond what the last commit knows; that nothing is overdue;
that files with texts and dead letters belong to each other; that runs wait for
entries that exist; and that each file can be read. Each finding is one line, with
what to do. It works at rest and beside a live session: where something does not fit,
it looks once more under the inbox's lock. Lines that were not made by send have no
name of their own, so of them it is not told how often they were done.

With --repair it mends what can be mended safely, and records that in an event
(mended): it finishes a commit that was killed, moves what is overdue, has entries
that wait and were settled before passed without a turn, and removes files that
nothing refers to. It delivers nothing, and takes away no answer.

Exit status: 0 nothing was found, or all of it was mended; 1 something is left, or
could not be looked at.`,
	Example: `heartbeat fsck
heartbeat fsck --repair`,
	Build: func() (*pflag.FlagSet, cli.Action) {
		o := &fsckFlags{}
		f := cli.NewFlags("fsck")
		o.Add(f)
		f.BoolVar(&o.repair, "repair", false, "mend what can be mended safely")
		o.addColor(f)
		return f, func(_ []string, s cli.Streams) error { return o.run(s) }
	},
}

func (o *fsckFlags) run(s cli.Streams) error {
	box, err := o.Open()
	if err != nil {
		return err
	}
	ctx := context.Background()
	in := doctor.Input{Now: time.Now(), Driven: orchestrate.Driven}
	var all []doctor.Check
	if !o.repair {
		all = doctor.Fsck(ctx, in, box)
	} else if all, err = doctor.Repair(ctx, in, box); err != nil {
		return fmt.Errorf("fsck: repair %s: %w", box.Path(), err)
	}
	return o.checked("fsck", all, o.JSON, s, "finding", "findings", doctor.Warn, doctor.Fail)
}
