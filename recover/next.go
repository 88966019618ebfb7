package recover

import (
	"errors"
	"math/rand/v2"
	"time"

	"heartbeat/inbox"
	"heartbeat/internal/claude"
	"heartbeat/internal/claude/limit"
	"heartbeat/internal/machine"
	"heartbeat/orchestrate/effect"
)

// Hold is why nothing is delivered, empty if nothing keeps it.
type Hold struct {
	Paused  *inbox.Pause
	Backoff *inbox.Backoff
	// Stopping is the process that is about to end, and has nothing delivered until then.
	Stopping *inbox.Stopping
	Owner    *Owner // who has the entry in flight, and lives; only [Waiting] says that
}

// Any reports whether something keeps delivery back.
func (h Hold) Any() bool {
	return h.Paused != nil || h.Backoff != nil || h.Stopping != nil || h.Owner != nil
}

// Held says why nothing is delivered now. It pauses delivery where the day has reached its
// limit, and notes the settings. The caller commits.
func Held(tx *inbox.Tx, a Asker) (h Hold, err error) {
	tx.NoteLimit(a.Limits.Day)
	if a.Checks != nil {
		tx.NoteChecks(a.Checks.Names())
	}
	if a.Limits.Day.Any() { // or what was spent today is not even asked for
		if over := JudgeDay(a.Limits, tx.Today()); over != nil {
			if err := PauseForDay(tx, over); err != nil {
				return h, err
			}
		}
	}
	if h.Paused, err = tx.Paused(); err != nil {
		return h, err
	}
	if h.Stopping, err = tx.Stopping(); err != nil {
		return h, err
	}
	h.Backoff, err = tx.Backoff()
	return h, err
}

// PauseForDay pauses delivery until midnight, unless a pause holds that is to last longer.
func PauseForDay(tx *inbox.Tx, over *Over) error {
	until := tx.Midnight()
	held, err := tx.Paused()
	if err != nil || held != nil && (held.Until == nil || !held.Until.Before(until)) {
		return err
	}
	_, err = tx.Pause(over.Figures+" "+inbox.LimitOfDay, &until)
	return err
}

// mostSettled bounds how many entries one commit settles before it delivers one.
const mostSettled = 100

// Next is the entry to deliver, as [inbox.Tx.Next] returns it. On the way, entries are
// settled that were resolved elsewhere, and those are set aside whose earlier deliveries,
// or whose run, have reached a limit. Its error matches [inbox.ErrMore] where so much was
// settled that others come first. Ask [Held] before.
func Next(tx *inbox.Tx, a Asker, still inbox.Mark) (inbox.Entry, error) {
	for range mostSettled {
		e, err := tx.Next(still)
		if err != nil {
			return e, err
		}
		_, ofRun := effect.MarkIn(e.Metadata)
		if ofRun && a.Elsewhere == nil {
			return e, nil // which the hook that delivers it refuses if need be
		}
		if ofRun {
			switch why, err := a.Elsewhere(e); {
			case err != nil:
				return e, err
			case why != "":
				a.note("entry %s is settled without a delivery: %s", e.ID, why)
				if err := tx.ResolveElsewhere(e, why); err != nil {
					return e, err
				}
				continue
			}
		}
		if refused, err := a.refuse(tx, e); err != nil || !refused {
			return e, err
		}
	}
	return inbox.Entry{}, inbox.ErrMore
}

// ChecksOf are the names of the checks that an entry has to pass before it counts as
// answered. The error says why nobody can check it as it asks.
func (a Asker) ChecksOf(e inbox.Entry) ([]string, error) {
	if a.Checks == nil {
		return nil, nil
	}
	asked, err := e.Checks()
	if err != nil {
		return nil, err
	}
	return a.Checks.For(asked)
}

// refuse sets aside the entry that tx.Next returned last if nobody can check it as it asks,
// or if its earlier deliveries have reached its limit.
func (a Asker) refuse(tx *inbox.Tx, e inbox.Entry) (refused bool, err error) {
	if _, err := a.ChecksOf(e); err != nil {
		return true, tx.RefuseCheck(e, err.Error())
	}
	if e.Attempt < 2 {
		return false, nil
	}
	own, err := e.Limits()
	if err != nil {
		return false, nil // tx.Next sets such an entry aside before its first delivery
	}
	figures, over := own.Within(a.Limits.Entry).Over(e.Spent())
	if !over {
		return false, nil
	}
	return true, tx.RefuseOverBudget(e, figures+attempts(e.Attempt-1))
}

// Waiting says whether an entry waits, or is in flight, and why it is to wait longer: for
// those who start a session for it. The caller commits, also where the error matches
// [inbox.ErrMore].
func Waiting(tx *inbox.Tx, a Asker) (h Hold, waits bool, err error) {
	if h, err = Held(tx, a); err != nil {
		return h, false, err
	}
	if d := tx.InFlight(); d != nil {
		if o := OwnerOf(tx, d); o.Life == machine.Alive {
			h.Owner = &o
		}
		return h, true, nil
	}
	_, err = Next(tx, a, inbox.Mark{})
	switch {
	case errors.Is(err, inbox.ErrEmpty):
		return h, false, nil
	case errors.Is(err, inbox.ErrTorn): // the hook waits until it is whole
		err = nil
	}
	return h, err == nil, err
}

// TakeBack settles the next entry without a delivery, if it is the one that was resolved
// elsewhere: why says where. The caller commits.
func TakeBack(tx *inbox.Tx, is func(inbox.Entry) bool, why string) (taken bool, err error) {
	e, err := tx.Next(inbox.Mark{})
	switch {
	case err == nil && is(e):
		return true, tx.ResolveElsewhere(e, why)
	case errors.Is(err, inbox.ErrEmpty) || errors.Is(err, inbox.ErrTorn):
		return false, nil
	}
	return false, err
}

// HoldDelivery stops delivery after an error that ended a turn: for a while, or until
// somebody resumes if only a person can fix it. ours says that the turn was an entry's;
// any other turn changes nothing while delivery is already held. The caller commits.
func HoldDelivery(tx *inbox.Tx, f *inbox.Failure, ours bool) error {
	remedy := claude.RemedyFor(f.Error, f.Message)
	if remedy.Person {
		_, err := tx.Pause(f.String(), nil)
		return err
	}
	held, err := tx.Backoff()
	if err != nil {
		return err
	}
	streak, err := tx.Streak()
	if err != nil {
		return err
	}
	if ours || streak == 0 {
		streak++
	}
	length, named := remedy.Backoff(streak, rand.Float64()), false
	now := time.Now()
	if reset, ok := limit.End(f.Message, now); ok && !remedy.Counts {
		length, named = untilReset(reset.Sub(now)), true
	}
	if held != nil && !named && !ours {
		return nil
	}
	_, err = tx.BackOff(length, streak, named, f)
	return err
}

// maxResetJitter bounds the delay after the end of a limit, so that not everybody who
// waited for it tries at once.
const maxResetJitter = 30 * time.Second

// untilReset is how long to wait for the end of a limit.
func untilReset(wait time.Duration) time.Duration {
	wait = max(wait, 0)
	return wait + time.Second + time.Duration(rand.Float64()*float64(min(wait/5, maxResetJitter)))
}

// The names of a hook's own errors in the record of a session.
const (
	CannotWake = "rewake" // the session ends with its turn
	HookError  = "hook"   // an entry could not be handed over; the hook tries again
)
