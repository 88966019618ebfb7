package command

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"heartbeat/inbox"
	"heartbeat/inbox/outcomes"
	"heartbeat/internal/cli"
	"heartbeat/internal/cli/program"
	"heartbeat/internal/words"
	recovery "heartbeat/recover"
)

type compactFlags struct {
	cli.InboxFlags
	keep  cli.Span
	trims bool // --keep was given
}

var compactVerb = cli.Verb{
	Name:  "compact",
	Short: "give back the disk space of what was settled",
	Long: `Give back the disk space of what was settled, beside a live session and beside
producers. The inbox keeps its length and every offset: what was settled becomes
a hole in it, but for the last settled line and at least 4 KiB before the cursor,
by which the file is recognised. Files that killed commands left are removed.

With --keep, older results, events, costs and closed dead letters are thrown away as
well; 0 keeps only what arrives meanwhile. The sum of what was spent stays known. An
id whose result is gone may be sent once more.

Exit status: 0 done, also if there was nothing to give back; 1 not done. If the file
system cannot make a hole in a file, the inbox stays as it is, and --keep is carried
out all the same.`,
	Example: `heartbeat compact
heartbeat compact --keep 30d`,
	Build: func(f *pflag.FlagSet) cli.Action {
		var o compactFlags
		o.Add(f)
		f.Var(&o.keep, "keep", "throw away older results, events, costs and closed dead letters (seconds or a duration; 0: all)")
		f.Lookup("keep").DefValue = ""
		return onInbox("", changing(&o.InboxFlags), cli.NoArgs, func(box *inbox.Inbox, _ []string, s cli.Streams) error {
			o.trims = f.Changed("keep")
			return o.run(box, s)
		})
	},
}

// compacted is what compact prints with --json.
type compacted struct {
	inbox.Compaction
	Trimmed *outcomes.Trimming `json:"trimmed,omitempty"` // with --keep
}

func (o *compactFlags) run(box *inbox.Inbox, s cli.Streams) (err error) {
	var c compacted
	defer func() { err = errors.Join(err, doneUntold(o.report(c, err == nil, box, s))) }() // also what a failure left done
	if o.trims {
		before := time.Now().Add(-time.Duration(o.keep))
		if o.keep == 0 {
			before = time.Now().AddDate(1000, 0, 0) // nothing is kept, also after the clock was set back
		}
		n, err := outcomes.Trim(context.Background(), box, before)
		s.Warn(n.Warnings)
		if err == nil || n.Results+n.DeadLetters+n.Events+n.Costs > 0 {
			c.Trimmed = &n
		}
		if err != nil {
			return fmt.Errorf("compact: %w", err)
		}
	}
	err = cli.InTransaction(box, s, func(tx *inbox.Tx) error { return recovery.ForgetSpills(box, tx.InFlight()) })
	if err == nil {
		err = box.ForgetLeftovers(context.Background())
	}
	if err != nil {
		return fmt.Errorf("compact: %w", err)
	}
	c.Compaction, err = box.Compact(context.Background())
	s.Warn(c.Compaction.Warnings)
	if errors.Is(err, inbox.ErrNoHoles) {
		err = fmt.Errorf("%w: nothing was changed in the inbox: its space comes back when it is truncated, once nothing waits in it", err)
	}
	return err
}

// report prints what was done. If the inbox could not be compacted, only trimming is reported.
func (o *compactFlags) report(c compacted, holes bool, box *inbox.Inbox, s cli.Streams) error {
	if !holes && c.Trimmed == nil {
		return nil
	}
	if o.JSON {
		return cli.PrintJSON(s.Out, c)
	}
	switch {
	case holes && c.Freed == 0:
		noteNothing(&o.InboxFlags, s, "to free", box)
	case holes:
		freed := fmt.Sprintf("freed %s of the inbox: what stood before offset %d takes no space", words.Size(c.Freed), c.To)
		if err := program.Say(s, freed); err != nil {
			return err
		}
	}
	n := c.Trimmed
	switch {
	case n == nil:
		return nil
	case n.Results+n.DeadLetters+n.Events+n.Costs == 0:
		noteNothing(&o.InboxFlags, s, "to trim", box)
		return nil
	}
	parts := []string{
		words.Count(n.Results, "result", "results"), words.Count(n.DeadLetters, "dead letter", "dead letters"), words.Count(n.Events, "event", "events"),
	}
	if n.Costs > 0 {
		parts = append(parts, words.Count(n.Costs, "cost", "costs"))
	}
	last := len(parts) - 1
	return program.Say(s, fmt.Sprintf("trimmed %s and %s, which freed %s", strings.Join(parts[:last], ", "), parts[last], words.Size(n.Freed)))
}
