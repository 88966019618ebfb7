package command

import (
	"errors"
	"time"

	recovery "heartbeat/recover"

	"github.com/spf13/pflag"

	"heartbeat/inbox"
	"heartbeat/internal/claude"
	"heartbeat/internal/cli"
	"heartbeat/internal/money/account"
	"heartbeat/internal/money/book"
	"heartbeat/internal/money/price"
)

var pauseVerb = cli.Verb{
	Name:  "pause",
	Short: "hold delivery, without touching what is in flight",
	Long: `Hold delivery: from now on a draining hook approves the stop, and a waiting one
waits. The entry in flight is acknowledged as usual, and producers go on
sending. Pausing again changes what it names of the reason and the end; but a
pause that an error began, such as that of a login, stays as it is until resume.

Exit status: 0 delivery is paused, 1 it is not.`,
	Example: `heartbeat pause --reason "the build server is down"
heartbeat pause --for 30m`,
	Build: func(f *pflag.FlagSet) cli.Action {
		var i cli.InboxFlags
		var reason string
		var length cli.Span
		i.Add(f)
		f.StringVar(&reason, "reason", "", "a `text` that status and the hook's stderr give as the reason")
		f.Var(&length, "for", "resume by itself after this time (seconds or a duration)")
		return onInbox("", changing(&i), func([]string) error {
			if f.Changed("for") && length == 0 {
				return errors.New("--for 0 would be no pause: give a time, or leave the flag out")
			}
			return nil
		}, func(box *inbox.Inbox, _ []string, s cli.Streams) error {
			return pause(box, &i, f.Changed("reason"), reason, time.Duration(length), s)
		})
	},
}

func pause(box *inbox.Inbox, i *cli.InboxFlags, named bool, reason string, length time.Duration, s cli.Streams) error {
	var p inbox.Pause
	err := change(box, s, func(tx *inbox.Tx) (err error) {
		was, err := tx.Holds().Paused()
		if err != nil {
			return err
		}
		if was != nil && claude.RemedyOf(was.Reason).Person { // the launcher acts on its reason
			s.Note("an error that only a person can mend has paused delivery, so that pause stays as it is until heartbeat resume")
			p = *was
			return nil
		}
		var until *time.Time
		if was != nil && !was.OfLimit() {
			until = was.Until
			if !named {
				reason = was.Reason
			}
		}
		if length > 0 {
			until = new(time.Now().Add(length).UTC())
		}
		p, err = tx.Holds().Pause(reason, until)
		return err
	})
	if err != nil {
		return err
	}
	return reportDone(i, s, p, p.String())
}

var resumeVerb = cli.Verb{
	Name:  "resume",
	Short: "go on after a pause or a back-off",
	Long: `Go on delivering: end a pause, and the back-off after turns that ended in errors,
and forget how many did. A hook that waits notices at once; otherwise the next
Stop does.

With --rewake a turn that ended in an error begins a back-off, which ends by
itself, or a pause, where only a person can help (the login, the bill): mend that
first, then resume.

Exit status: 0 nothing holds delivery, 1 that could not be recorded.`,
	Example: `heartbeat resume`,
	Build: func(f *pflag.FlagSet) cli.Action {
		var i cli.InboxFlags
		i.Add(f)
		return onInbox("", changing(&i), cli.NoArgs, func(box *inbox.Inbox, _ []string, s cli.Streams) error { return resume(box, &i, s) })
	},
}

// resumed is what resume prints with --json.
type resumed struct {
	Was           *inbox.Pause   `json:"was"`                  // a pause
	WasBackingOff *inbox.Backoff `json:"was_backing_off"`      // as in "status"
	Over          string         `json:"over_limit,omitempty"` // why delivery pauses again at the next Stop
}

func resume(box *inbox.Inbox, i *cli.InboxFlags, s cli.Streams) error {
	var r resumed
	err := change(box, s, func(tx *inbox.Tx) (err error) {
		if r.Was, err = tx.Holds().Paused(); err != nil {
			return err
		}
		if r.WasBackingOff, err = tx.Holds().Backoff(); err != nil {
			return err
		}
		account.Of(tx).AcceptUnpriced()
		return tx.Holds().Resume()
	})
	if err != nil {
		return err
	}
	r.WasBackingOff = shownBackoff(r.WasBackingOff)
	if now, err := book.Spending(box, nil); err != nil {
		s.Note("what was spent today cannot be told: %v", err) // delivery is resumed all the same
	} else if v := recovery.JudgeDay(price.Plan{Day: recovery.DayLimit(&now.Account)}, now.Today()); v != nil {
		r.Over = v.Figures
	}
	return reportDone(i, s, r, r.sentence())
}

func (r resumed) sentence() string {
	now, but := "delivery goes on", ""
	if r.Over != "" {
		now = "the pause is over"
		but = ", but at the next Stop delivery pauses until midnight: " + r.Over + " " + inbox.LimitOfDay +
			": give the hook a higher one (--max-cost-per-day or --max-tokens-per-day, where it is wired), or wait for midnight"
	}
	switch {
	case r.Was != nil && r.WasBackingOff != nil:
		now += ": it was " + r.Was.String() + ", and " + r.WasBackingOff.String()
	case r.Was != nil:
		now += ": it was " + r.Was.String()
	case r.WasBackingOff != nil:
		now += ": it was " + r.WasBackingOff.String()
	default:
		now = "delivery was not paused"
	}
	return now + but
}

func change(box *inbox.Inbox, s cli.Streams, change func(*inbox.Tx) error) error {
	return cli.InTransaction(box, s, func(tx *inbox.Tx) error {
		if err := change(tx); err != nil {
			return err
		}
		return tx.Commit()
	})
}
