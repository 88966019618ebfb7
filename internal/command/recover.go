package command

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/pflag"

	"heartbeat/inbox"
	"heartbeat/internal/cli"
	"heartbeat/internal/money/meter"
	recovery "heartbeat/recover"
)

var recoverVerb = cli.Verb{
	Name:  "recover",
	Short: "decide about an entry that a session left unanswered",
	Long: `Decide about the entry that was in flight when its session ended, and remove
the session's leftovers (.in-flight, .responded). Call it before the next
session, and before truncating the inbox. An entry that was answered is only
tidied up; one whose text provably never reached the model is delivered again
whatever the policy. So is one whose turn ended in an error of the model's API, while
its attempts last; delivery then waits until the limit ends, for a growing time, or
for a person (heartbeat status says which).

An entry whose session lives is left to that session. With --force a person takes it
away: the session works on, and what it still answers is kept with the dead letter.

Results, events and scheduled entries that were not written here, but came with a
copy or a repository, are moved away by whichever command finds them, and not
believed. If they are yours, --adopt takes them back.

Exit status: 0 done (also when nothing was in flight), 1 a session that lives has the
entry, or the state is not valid or could not be changed: nothing was discarded.`,
	Example: `heartbeat recover --on-orphan retry || exit 1`,
	Build: func(f *pflag.FlagSet) cli.Action {
		var i cli.InboxFlags
		var o recovery.Settings
		i.Add(f)
		cli.AddOrphan(f, &o)
		force := false
		f.BoolVar(&force, "force", false, "decide although the session that has the entry lives")
		f.BoolVar(&i.Adopt, "adopt", false, "take results, events and scheduled entries for yours that were not written here")
		return func(_ []string, s cli.Streams) error {
			return runRecover(&i, recovery.Asker{Settings: o, Force: force, Note: s.Note}, s)
		}
	},
}

// byPerson returns an error if an agent started this process. what names the act that only a person may do.
func byPerson(box *inbox.Inbox, what string) error {
	v, err := box.View()
	if err != nil {
		return err
	}
	all, err := v.Sessions()
	if err = errors.Join(err, v.Close()); err != nil {
		return err
	}
	if recovery.InSession(os.Getpid(), all) {
		return fmt.Errorf("%s is a person's to say, and this was started from within a session: nothing was changed", what)
	}
	return nil
}

func runRecover(i *cli.InboxFlags, a recovery.Asker, s cli.Streams) (err error) {
	if a.Box, err = i.Open(); err != nil {
		return err
	}
	if a.Force {
		if err := byPerson(a.Box, "--force"); err != nil {
			return fmt.Errorf("recover: %w", err)
		}
	}
	report, err := recovery.Run(context.Background(), a, recovery.Sight{})
	switch {
	case err != nil:
		return fmt.Errorf("recover: %w", err)
	case report.Action == recovery.Owned:
		return fmt.Errorf("recover: %s: nothing was changed: end that session, or say --force", report.Owner)
	}
	s.Warn(report.Warnings)
	err = cli.InTransaction(a.Box, s, func(tx *inbox.Tx) error {
		return errors.Join(meter.NoteCharge(tx, "", recovery.LivingOwner(tx) != nil), tx.Commit(), recovery.ForgetSpills(a.Box, tx.InFlight()))
	})
	if err == nil {
		err = a.Box.ForgetLeftovers(context.Background())
	}
	if err != nil {
		s.Note("%v: compact tries again", err) // the decision is committed
	}
	return i.Print(s, report, report.String())
}
