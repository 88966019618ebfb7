package hook

import (
	"context"
	"errors"
	"fmt"
	"time"

	recovery "heartbeat/recover"

	"heartbeat/inbox"
	"heartbeat/internal/claude"
	"heartbeat/internal/cli"
	"heartbeat/internal/disk"
	"heartbeat/internal/money/budget"
	"heartbeat/internal/money/charging"
	"heartbeat/internal/money/price"
	"heartbeat/internal/words"
)

// lineWait is how long a hook waits for the client to write the last answer to its transcript,
// where that may be too much. Only tests set it.
var lineWait = 3 * time.Second

const (
	answerPoll = 20 * time.Millisecond
	// nearLimit is how many more requests have to fit below a limit for the hook not to wait.
	nearLimit = 3
)

// afterTools stops the turn of an entry that has reached a limit, or whose day has: between two requests, so that no more than the last one goes beyond it. It also
// runs for a subagent, whose requests count as well; there the client ends only that
// one, and the rest of the turn at its own next hook.
func (h *hook) afterTools() int {
	v, seq, err := h.lookAtSpending()
	if err == nil && v != nil {
		err = h.stopTurn(v, seq)
	}
	if u := h.uncountedBatch; u.changed { // a turn may go on for hours without a Stop: the lock is taken once for each cause
		h.record(func(tx *inbox.Tx) error { return tx.NoteUncounted(h.input.SessionID, u.cause) })
	}
	if h.cut { // once it has grown again nobody could tell
		h.record(func(tx *inbox.Tx) error { h.placeTurn(tx); return nil })
	}
	if err != nil {
		h.Complain(fmt.Errorf("%w: the turn goes on", err))
	}
	return cli.ExitOK
}

// lookAtSpending is the usual case: it takes no lock and changes nothing. It returns the limit that is reached, nil for none,
// and the delivery that it is about.
func (h *hook) lookAtSpending() (v *recovery.Over, seq int64, err error) {
	view, err := h.box.View()
	if err != nil {
		return nil, 0, err
	}
	defer func() { err = errors.Join(err, view.Close()) }()
	if prompt, why := view.Stopped(h.input.SessionID); why != "" && prompt == h.input.PromptID {
		return nil, 0, h.tellStopped(why)
	}
	d := view.InFlight()
	if d == nil || !h.isTurn(d.SessionID, d.PromptID) {
		return nil, 0, nil // nobody's turn but the person's
	}
	l := recovery.LimitsOf(d, h.Limits)
	if !l.Any() {
		return nil, 0, nil
	}
	if !l.Entry.Spending() && !l.Day.Any() {
		return recovery.Judge(l, recovery.Spent{Took: recovery.Took(d)}, d.Attempt), d.DeliveredSeq, nil
	}
	v, err = h.judgeSpending(view, d, l)
	return v, d.DeliveredSeq, err
}

// isTurn reports whether this event is of that turn.
func (h *hook) isTurn(session, prompt string) bool {
	return h.input.SessionID == session && h.input.PromptID == prompt
}

// judgeSpending holds against the limits what the session has spent by now. The client may write the answer that asked
// for these tools after it has run them: close to a limit the hook waits for it, and takes one that does not come to be
// as large as the largest.
func (h *hook) judgeSpending(view *inbox.View, d *inbox.Delivery, l budget.Plan) (*recovery.Over, error) {
	for began := time.Now(); ; time.Sleep(answerPoll) {
		c, err := h.count(view, h.input.ToolUse)
		h.uncountedBatch.found(view, h.input.SessionID, err)
		if c == nil {
			return nil, err
		}
		over := h.judgeWith(view, d, l, c, 0)
		switch {
		case h.input.ToolUse == "" || c.HasTool || over != nil,
			c.Requests > 0 && h.judgeWith(view, d, l, c, nearLimit) == nil:
			return over, err
		case time.Since(began) >= lineWait:
			return h.judgeWith(view, d, l, c, 1), err
		}
	}
}

// someMore is what so many requests more may take.
func someMore(c *charging.Counted, n int64) price.Amount {
	return price.Amount{Nanos: n * c.Largest.Nanos, Dollars: c.Largest.Nanos > 0, Tokens: price.Tokens{Input: n * c.Largest.Tokens.Sum()}}
}

// judgeWith judges what was counted, and so many requests more.
func (h *hook) judgeWith(view *inbox.View, d *inbox.Delivery, l budget.Plan, c *charging.Counted, n int64) *recovery.Over {
	spent := recovery.Spent{Spending: view.Spending(h.input.SessionID, c.Open(h.input.SessionID)), Took: recovery.Took(d)}
	for _, a := range []*price.Amount{&spent.Entry, &spent.Here, &spent.Today} {
		*a = a.Plus(someMore(c, n))
	}
	return recovery.Judge(l, spent, d.Attempt)
}

// uncounted is what this hook found about the count between two requests.
type uncounted struct {
	changed bool // what the state has of it is not so any more
	cause   string
}

// found notes what came of a count, where that is not what the state has.
func (u *uncounted) found(view *inbox.View, session string, err error) {
	if u.cause = ""; err != nil {
		u.cause = err.Error()
	}
	u.changed = !inbox.SameFinding(u.cause, view.Uncounted(session))
}

// stopTurn settles the entry in flight, and has the client end the turn and the launcher
// the session.
func (h *hook) stopTurn(v *recovery.Over, seq int64) error {
	tx, err := h.box.Begin(context.Background())
	if err != nil {
		return err
	}
	why := ""
	if d := tx.InFlight(); d != nil && d.DeliveredSeq == seq && h.isTurn(d.SessionID, d.PromptID) {
		why = fmt.Sprintf("heartbeat: entry %s was stopped: %s", words.Name(d.ID(), d.EntryID), v.Figures)
		h.placeTurn(tx)
		h.uncounted(charging.Turn(tx, h.input.SessionID))
		_, err = h.settle(tx, recovery.Sight{Over: v, Charged: true})
		if err == nil {
			tx.StopTurn(d, why)
			err = tx.Commit()
		}
	} else if prompt, stopped := tx.Stopped(h.input.SessionID); prompt == h.input.PromptID {
		why = stopped // another hook of this turn was faster
	}
	if err = errors.Join(err, h.end(tx)); why == "" || err != nil {
		return err
	}
	return h.tellStopped(why)
}

// tellStopped has the client end the turn and say why, and the launcher end the session.
func (h *hook) tellStopped(why string) error {
	err := claude.WriteStop(h.Out, why)
	if h.SignalFile != "" {
		err = errors.Join(err, disk.Touch(h.SignalFile))
	}
	return err
}
