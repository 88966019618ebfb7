package enforce

import (
	"fmt"
	"time"

	"heartbeat/inbox"
	"heartbeat/internal/cli"
	recovery "heartbeat/recover"
)

// Settle settles the entry in flight, which or whose session has reached a limit, and
// pauses delivery where the day has. maxAttempts is how often an entry may be given back.
// The caller commits.
func Settle(tx *inbox.Tx, v *Verdict, maxAttempts int) error {
	d := tx.InFlight()
	if v.Reach == Day && !v.Alone {
		if err := PauseForDay(tx, v); err != nil {
			return err
		}
	}
	if d.Verdict != nil && d.Verdict.Kind != inbox.VerdictFailed {
		_, err := recovery.Settle(tx, recovery.Options{MaxAttempts: maxAttempts})
		return err // it was done, or given up, before
	}
	switch {
	case v.Run:
		return tx.OverRun(v.Figures)
	case v.Alone:
		return tx.OverBudget(v.Figures)
	case d.Attempt >= maxAttempts:
		return tx.OverBudget(fmt.Sprintf("%s, at the last of its attempts (%d)", v.Figures, d.Attempt))
	}
	tx.Worked(recovery.Worked(d))
	return tx.GiveBackFor(v.Figures, true)
}

// PauseForDay pauses delivery until midnight, unless a pause holds that is to last longer.
func PauseForDay(tx *inbox.Tx, v *Verdict) error {
	until := tx.Midnight()
	held, err := tx.Paused()
	if err != nil || held != nil && (held.Until == nil || !held.Until.Before(until)) {
		return err
	}
	_, err = tx.Pause(v.Figures+" "+inbox.LimitOfDay, &until)
	return err
}

// Refuse sets aside the entry that tx.Next returned last if its earlier deliveries have
// reached its limit, or its babysitter run has reached its own or perRun (billionths of a
// dollar, 0 is none), and reports whether they have.
func Refuse(tx *inbox.Tx, box *inbox.Inbox, e inbox.Entry, flags *cli.LimitFlags, perRun int64) (refused bool, err error) {
	if refused, err = refuseRun(tx, box, e, perRun); refused || err != nil {
		return refused, err
	}
	if e.Attempt < 2 {
		return false, nil
	}
	own, err := e.Limits()
	if err != nil {
		return false, nil // Next sets such an entry aside before its first delivery
	}
	figures, over := own.Within(flags.Entry).Over(e.Spent())
	if !over {
		return false, nil
	}
	return true, tx.RefuseOverBudget(e, figures+attempts(e.Attempt-1))
}

// Took is for how long the entry in flight was worked on, all its deliveries together.
func Took(d *inbox.Delivery) time.Duration { return d.Took + recovery.Worked(d) }
