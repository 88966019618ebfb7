package recover

import (
	"errors"
	"math/rand/v2"
	"time"

	"heartbeat/inbox"
	"heartbeat/internal/claude"
	"heartbeat/internal/money/account"
	"heartbeat/internal/money/meter"
	"heartbeat/internal/money/price"
	"heartbeat/orchestrate/effect"
)

// Hold lists what keeps delivery back. It is empty while entries may be delivered.
type Hold struct {
	Paused   *inbox.Pause
	Backoff  *inbox.Backoff
	Stopping *inbox.Stopping // a process that is about to end and takes no entry until it has
	Owner    *Owner          // the live owner of the entry in flight; only [Waiting] sets it
}

// Any reports whether something keeps delivery back.
func (h Hold) Any() bool {
	return h.Paused != nil || h.Backoff != nil || h.Stopping != nil || h.Owner != nil
}

// Held returns what keeps delivery back now. It notes the settings, and pauses delivery once the day has reached its
// limit. The caller commits.
func Held(tx *inbox.Tx, a Asker) (h Hold, err error) {
	account.Of(tx).NoteLimit(a.Limits.Day.JSON())
	if a.Checks != nil {
		tx.NoteChecks(a.Checks.Names())
	}
	if a.Limits.Day.Any() { // today's spending is read only for a limit
		if over := JudgeDay(a.Limits, account.Of(tx).Today()); over != nil {
			if err := PauseForDay(tx, over); err != nil {
				return h, err
			}
		}
	}
	if h.Paused, err = tx.Holds().Paused(); err != nil {
		return h, err
	}
	if h.Paused == nil && (a.Limits.Day.Nanos > 0 || a.Limits.Entry.Nanos > 0) {
		if _, broken := meter.Prices(); broken != nil { // a limit would let more pass than it says
			again := time.Now().Add(10 * time.Minute) // a file that is whole then needs nobody's command
			p, err := tx.Holds().Pause(broken.Error()+": mend it, since limits in dollars are not certain to hold", &again)
			if h.Paused = &p; err != nil {
				return h, err
			}
		}
	}
	if h.Stopping, err = tx.Holds().Stopping(); err != nil {
		return h, err
	}
	h.Backoff, err = tx.Holds().Backoff()
	return h, err
}

// PauseForDay pauses delivery until midnight, unless a pause is in force that lasts longer.
func PauseForDay(tx *inbox.Tx, over *Over) error {
	until := account.Of(tx).Midnight()
	held, err := tx.Holds().Paused()
	if err != nil || held != nil && (held.Until == nil || !held.Until.Before(until)) {
		return err
	}
	_, err = tx.Holds().Pause(over.Figures+" "+inbox.LimitOfDay, &until)
	return err
}

const mostSettled = 100 // bounds how many entries one commit settles before it delivers one

// Next returns the entry to deliver, as [inbox.Tx.Next] does. On the way it settles entries that were resolved
// elsewhere, and sets aside those that [Asker.refuse] refuses. After mostSettled of them the error matches
// [inbox.ErrMore]: the caller commits and calls again. Call [Held] first.
func Next(tx *inbox.Tx, a Asker, still inbox.Mark) (inbox.Entry, error) {
	for range mostSettled {
		e, err := tx.Next(still)
		if err != nil {
			return e, err
		}
		if _, ofRun := effect.MarkIn(e.Metadata); ofRun {
			if a.Elsewhere == nil {
				return e, nil // the hook that delivers it refuses it if need be
			}
			why, err := a.Elsewhere(e)
			if err != nil {
				return e, err
			}
			if why != "" {
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

// ChecksOf returns the names of the checks that an entry has to pass before it counts as answered. The error says
// why the checks that it asks for cannot be run.
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

// InvalidLimits returns what is wrong with the limits of an entry that was never delivered, or nil. raised is
// [account.Money.IsRaised].
func InvalidLimits(e inbox.Entry, raised func(entryID string) bool) error {
	parse := price.ParseSentLimits
	if raised(e.EntryID) {
		parse = price.ParseLimits
	}
	_, err := parse(e.Limits())
	return err
}

// refuse sets aside the entry that tx.Next just returned if its checks cannot be run, its limits cannot be parsed, or
// its earlier deliveries have reached them.
func (a Asker) refuse(tx *inbox.Tx, e inbox.Entry) (refused bool, err error) {
	if _, err := a.ChecksOf(e); err != nil {
		return true, tx.Refuse(e, inbox.ReasonCheck, err.Error())
	}
	if e.Attempt < 2 {
		if err := InvalidLimits(e, account.Of(tx).IsRaised); err != nil {
			return true, tx.Refuse(e, inbox.ReasonLimits, err.Error())
		}
		return false, nil
	}
	own, _ := price.ParseLimits(e.Limits()) // they were valid before the first delivery
	cost, took := e.Spent()
	figures, over := own.Within(a.Limits.Entry).Over(price.Spent{Amount: account.Amount(cost), Time: took})
	if !over {
		return false, nil
	}
	return true, tx.Refuse(e, inbox.ReasonOverBudget, figures+attempts(e.Attempt-1))
}

// Waiting reports whether an entry waits or is in flight, and what keeps it back, for those who start sessions. The
// caller commits, even if the error matches [inbox.ErrMore].
func Waiting(tx *inbox.Tx, a Asker) (h Hold, waits bool, err error) {
	if h, err = Held(tx, a); err != nil {
		return h, false, err
	}
	if tx.InFlight() != nil {
		h.Owner = LivingOwner(tx)
		return h, true, nil
	}
	_, err = Next(tx, a, inbox.Mark{})
	switch {
	case errors.Is(err, inbox.ErrEmpty):
		return h, false, nil
	case errors.Is(err, inbox.ErrTorn): // the hook waits until the line is whole
		err = nil
	}
	return h, err == nil, err
}

// TakeBack settles the next entry without a delivery if is reports true for it: why says where it was resolved. The
// caller commits.
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

// HoldDelivery stops delivery after an error that ended a turn: for a while, or until somebody resumes it if only a
// person can fix the cause. ours says that the turn was an entry's. Any other turn changes nothing while delivery is
// held already. The caller commits.
func HoldDelivery(tx *inbox.Tx, f *inbox.Failure, ours bool) error {
	remedy := claude.RemedyFor(f.Error, f.Message)
	if remedy.Person {
		_, err := tx.Holds().Pause(f.String(), nil)
		return err
	}
	held, err := tx.Holds().Backoff()
	if err != nil {
		return err
	}
	streak, err := tx.Holds().Streak()
	if err != nil {
		return err
	}
	if ours || streak == 0 {
		streak++
	}
	length, named := remedy.Backoff(streak, rand.Float64()), false
	failed := f.At.Local() // when the error named its time, which may be long before its turn is settled
	if f.At.IsZero() || time.Until(failed) > 0 {
		failed = time.Now()
	}
	if reset, ok := claude.LimitEnd(f.Message, failed); ok && !remedy.Counts {
		wait := max(time.Until(reset), 0)
		jitter := rand.Float64() * float64(min(wait/5, maxResetJitter)) // so that sessions do not all retry at once
		length, named = wait+time.Second+time.Duration(jitter), true
	}
	if held != nil && !named && !ours {
		return nil
	}
	_, err = tx.Holds().BackOff(length, streak, named, f)
	return err
}

const maxResetJitter = 30 * time.Second // bounds the extra delay after a limit ends

// Names under which a hook records its own errors for a session.
const (
	CannotWake = "rewake" // the session ends with its turn
	HookError  = "hook"   // an entry could not be handed over; the hook tries again
)
