package command

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"heartbeat/internal/cli"
)

type cancelFlags struct {
	cli.InboxFlags
	quietFlag
	all       bool
	olderThan cli.Span
	aged      bool // --older-than was given
}

func cancelVerb() cli.Verb {
	return cli.Verb{
		Name:  "cancel",
		Args:  "[ENTRY...]",
		IDs:   waitingIDs,
		Short: "take entries back that were not delivered yet",
		Long: `Take entries back that wait in the queue, were given back to it, or wait for their
time. Each becomes a dead letter, canceled, which dead-letter requeue puts back.
No byte of the inbox changes: what was canceled is passed over when its turn comes.
It is safe beside a live session and beside producers.

ENTRY is the id that its sender gave the entry, its entry_id, or a beginning of one
of these (at least four characters). Entries of the same text have one entry_id: name
one of them as ENTRY_ID@OFFSET, with the offset that peek shows. An entry in flight is
refused: the session is at it. With --older-than an entry without a sent_at, which only send writes, stays.

Exit status: 0 done, also where --all or --older-than found nothing; 1 not all was
done: no such entry waits, more than one has that name, or it is in flight. What
was done before that is printed.`,
		Example: `heartbeat cancel --inbox work/inbox.jsonl job-17
heartbeat cancel --inbox work/inbox.jsonl --older-than 24h
heartbeat cancel --inbox work/inbox.jsonl --all --json | jq -r .id`,
		Build: func() (*pflag.FlagSet, cli.Action) {
			var o cancelFlags
			f := cli.NewFlags("cancel")
			o.Add(f)
			f.BoolVar(&o.all, "all", false, "cancel whatever waits")
			f.Var(&o.olderThan, "older-than", "cancel what was sent longer ago (seconds or a duration)")
			f.Lookup("older-than").DefValue = ""
			o.addQuiet(f, "entry")
			return f, func(args []string, s cli.Streams) error {
				o.aged = f.Changed("older-than")
				if err := o.check(args); err != nil {
					return cli.Usage(err)
				}
				if err := o.run(args, s); err != nil {
					return fmt.Errorf("cancel: %w", err)
				}
				return nil
			}
		},
	}
}

func (o *cancelFlags) check(args []string) error {
	switch {
	case o.all && o.aged:
		return errors.New("--all and --older-than: one of them is enough")
	case (o.all || o.aged) && len(args) > 0:
		return errors.New("both an ENTRY and --all or --older-than: one of them is enough")
	case !o.all && !o.aged && len(args) == 0:
		return errors.New("say which: heartbeat peek shows the entries that wait")
	}
	return o.checkQuiet(&o.InboxFlags)
}

// wants reports whether the flags select an entry that was sent at that time.
func (o *cancelFlags) wants(sentAt time.Time) bool {
	return o.all || o.aged && !sentAt.IsZero() && time.Since(sentAt) > time.Duration(o.olderThan)
}
