package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/pflag"

	"heartbeat/inbox"
	"heartbeat/internal/cli"
	"heartbeat/internal/cli/program"
	"heartbeat/internal/words"
	"heartbeat/orchestrate"
	runs "heartbeat/orchestrate/run"
)

var orchestrateVerb = cli.Verb{
	Name:  "orchestrate",
	Short: "drive babysitter runs by way of the inbox",
	Long: `Take a step of each run: let its process run as far as it gets, and append an
entry for each effect that it then waits for and that has none yet. Sleeps that are
over are posted, and breakpoints treated as --breakpoints says. Call it as often as
you like, also beside itself, from cron, and after a crash: an effect has one entry
and one result. Without --once it goes on until every run is done, and takes a step
whenever an entry was settled or a sleep is over.

A hook with --run does the same in the session, whenever the inbox is empty.

Exit status: 0 done, or with --once the step was taken; 1 it could not be taken; 3 the
run goes no further by itself; 128+n signal n ended it.`,
	Example: `heartbeat orchestrate --run .a5c/runs/r1 --once
heartbeat orchestrate --run .a5c/runs/r1 --breakpoints ask`,
	Build: func(f *pflag.FlagSet) cli.Action {
		var i cli.InboxFlags
		var r cli.RunFlags
		var once, repair bool
		i.Add(f)
		r.Add(f)
		f.BoolVar(&repair, "repair", false, "mend a damaged journal first (run:repair-journal keeps the old one beside it)")
		f.BoolVar(&once, "once", false, "take one step, and end")
		return onInbox("", changing(&i), func([]string) error {
			if err := r.Check(); err != nil || len(r.Dirs) > 0 {
				return err
			}
			return errors.New("no run: name its directory with --run")
		}, func(box *inbox.Inbox, _ []string, s cli.Streams) error {
			return driveRuns(box, &i, &r, once, repair, s)
		})
	},
}

// orchestratePoll is how often runs are checked for what no event reports, such as a person's answer to a breakpoint.
const orchestratePoll = 2 * time.Second

func driveRuns(box *inbox.Inbox, i *cli.InboxFlags, r *cli.RunFlags, once, repair bool, s cli.Streams) error {
	ctx, stop := program.UntilSignal(0)
	defer stop()
	bridges, unread := orchestrate.OpenAll(ctx, r, box, s.Note)
	if repair {
		for _, b := range bridges {
			if _, err := b.Run.State(); !errors.Is(err, runs.ErrCorrupt) {
				continue // only a damaged journal is repaired, because that renumbers all events
			}
			done, err := b.CLI.Repair(ctx, b.Run)
			if err != nil {
				return err
			}
			s.Note("the journal of run %s was repaired: %s kept, %d dropped; the old one is %s", b.Run.ID(),
				words.Count(done.Kept, "event", "events"), done.Dropped, done.Backup)
		}
	}
	w := box.WatchOutcomes(orchestratePoll)
	defer func() { _ = w.Close() }() // only read
	for last := ""; ; {
		all, err := stepAll(ctx, i, bridges, &last, s)
		err = errors.Join(unread, err)
		if bridges = all.Unfinished; err != nil || once || !slices.ContainsFunc(all.Reports, goesOn) {
			return cmp.Or(err, stuck(all.Reports...))
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-w.C:
		}
	}
}

// stepAll takes a step of each run and prints the outcome if it differs from last.
func stepAll(ctx context.Context, i *cli.InboxFlags, bridges []*orchestrate.Bridge, last *string, s cli.Streams) (all orchestrate.Outcome, err error) {
	all, err = orchestrate.StepAll(ctx, bridges, func(ctx context.Context, b *orchestrate.Bridge) (orchestrate.Report, error) {
		return b.Step(ctx)
	})
	text := ""
	for _, step := range all.Reports {
		text += stepSentence(step)
	}
	if text == *last {
		return all, err
	}
	*last = text
	for _, step := range all.Reports {
		err = errors.Join(err, reportDone(i, s, step, stepSentence(step)))
	}
	return all, err
}

func goesOn(r orchestrate.Report) bool { return !r.Done && r.Guard == "" }

// stuck returns the error of runs that go no further by themselves, nil if there is none.
func stuck(reports ...orchestrate.Report) (err error) {
	for _, r := range reports {
		if r.Guard != "" {
			err = errors.Join(err, fmt.Errorf("run %s: %s", r.Run, cli.GuardHint(r.Guard, r.OutOfSteps)))
		}
	}
	if err != nil {
		err = cli.Status(cli.ExitDeadLettered, err)
	}
	return err
}

func stepSentence(r orchestrate.Report) string {
	text := "run " + r.Run + ": " + string(r.Status)
	add := func(n int, one, many string) {
		if n > 0 {
			text += ", " + words.Count(n, one, many)
		}
	}
	add(len(r.Queued), "entry queued", "entries queued")
	add(r.Waits, "entry waits", "entries wait")
	add(len(r.Posted), "result posted", "results posted")
	add(r.Unposted, "result is left to be posted", "results are left to be posted")
	add(len(r.Held), "effect waits for a person", "effects wait for a person")
	for _, note := range r.Notes {
		text += "; " + note
	}
	for _, why := range r.Refused {
		text += "; not posted: " + words.Brief(why)
	}
	switch {
	case r.Done:
		text += "; it is done"
	case r.Guard != "":
		text += "; " + cli.GuardHint(r.Guard, r.OutOfSteps)
	case r.NotBefore != nil:
		text += ", sleeps until " + words.Stamp(*r.NotBefore)
	}
	return text
}
