package main

import (
	"context"
	"fmt"

	"github.com/spf13/pflag"

	"heartbeat/inbox"
	recovery "heartbeat/recover"
	"heartbeat/recover/evidence"
)

func recoverVerb() verb {
	return verb{
		name:  "recover",
		short: "decide about an entry that a session left unanswered",
		long: `Decide about the entry that was in flight when its session ended, and remove
the session's leftovers (.in-flight, .responded). Call it before the next
session, and before truncating the inbox. An entry that was answered is only
tidied up; one whose text provably never reached the model is delivered again
whatever the policy.

Results, events and scheduled entries that were not written here, but came with a
copy or a repository, are moved away by whichever command finds them, and not
believed. If they are yours, --adopt takes them back.

Exit status: 0 done (also when nothing was in flight), 1 the state is not valid
or could not be changed: nothing was discarded.`,
		example: `heartbeat-stop recover --inbox work/inbox.jsonl --on-orphan retry || exit 1`,
		build: func() (*pflag.FlagSet, action) {
			var i inboxFlags
			var o orphanFlags
			f := newFlags("recover")
			i.add(f)
			o.add(f)
			f.BoolVar(&i.adopt, "adopt", false, "take results, events and scheduled entries for yours that were not written here")
			return f, func(args []string, s streams) error {
				if err := noArgs(args); err != nil {
					return err
				}
				if err := o.check(); err != nil {
					return usageError{err}
				}
				o.given = f.Changed("on-orphan")
				return runRecover(&i, o.options(), s)
			}
		},
	}
}

func runRecover(i *inboxFlags, o recovery.Options, s streams) error {
	box, err := i.open()
	if err != nil {
		return err
	}
	o.Unreached, o.Finished = evidence.Unreached, finished
	report, err := recovery.Run(context.Background(), box, o)
	if err != nil {
		return fmt.Errorf("recover: %w", err)
	}
	s.warn(report.Warnings)
	err = inTransaction(box, s, func(tx *inbox.Tx) error { return evidence.ForgetSpills(box, tx.InFlight()) })
	if err == nil {
		err = box.ForgetLeftovers(context.Background())
	}
	if err != nil {
		s.note("%v: compact tries again", err) // the decision stands
	}
	return i.print(s, report, report.String())
}
