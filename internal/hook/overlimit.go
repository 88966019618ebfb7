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
	"heartbeat/internal/money/meter"
	"heartbeat/internal/money/price"
	"heartbeat/internal/words"
)

// lineWait is how long a hook waits for the client to write the last answer to its transcript when that answer may
// exceed a limit. Only tests set it.
var lineWait = 3 * time.Second

const (
	answerPoll = 20 * time.Millisecond
	nearLimit  = 3 // how many more requests must fit below a limit for the hook not to wait
)

// betweenRequests stops the turn of an entry if the entry or the day has reached a limit. It runs after tools, and where
// another Stop hook continues the turn, so at most the last request exceeds the limit. It also runs for a subagent, whose
// requests count too: there the client ends the subagent alone, and the rest of the turn at its next hook.
func (h *hook) betweenRequests() int {
	v, err := h.checkSpending()
	if v != nil { // a failed count can only have missed spending
		err = h.stopTurn(v)
	}
	if cause := h.uncountedNow; cause != nil { // lock once for each cause: a turn may take hours without a Stop
		h.record(func(tx *inbox.Tx) error { tx.In(h.input.SessionID).NoteUncounted(*cause); return nil })
	}
	if h.cut { // note it now: once the transcript has grown again, nobody could tell
		h.record(func(tx *inbox.Tx) error { h.notePosition(tx); return nil })
	}
	if err != nil {
		h.Complain(fmt.Errorf("%w: the turn goes on", err))
	}
	return cli.ExitOK
}

// checkSpending returns the limit that was reached, or nil. It takes no lock and changes nothing.
func (h *hook) checkSpending() (v *recovery.Over, err error) {
	view, err := h.box.View()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, view.Close()) }()
	if prompt, why := view.In(h.input.SessionID).Stopped(); why != "" && prompt == h.input.PromptID {
		return nil, h.printStop(why)
	}
	d := view.InFlight()
	if d == nil || !h.isTurn(d.SessionID, d.PromptID) {
		return nil, h.stopAgent(view) // a person's own turn, or a subagent's
	}
	l := recovery.LimitsOf(d, h.Limits)
	if !l.Entry.Spending() && !l.Day.Any() {
		return recovery.OverTime(d, h.Limits), nil
	}
	v, err = h.judgeSpending(view, d, l)
	if cause := causeOf(err); !inbox.SameFinding(cause, view.In(h.input.SessionID).Uncounted()) {
		h.uncountedNow = &cause
	}
	return v, err
}

// stopAgent stops a background subagent that outlives its entry in a launched session, once the day has reached its limit.
// Nothing else would stop it.
func (h *hook) stopAgent(view *inbox.View) error {
	if h.input.AgentID == "" || h.SignalFile == "" || !h.Limits.Day.Any() {
		return nil
	}
	c, err := h.count(view, "")
	if c == nil {
		return err
	}
	if v := recovery.JudgeDay(h.Limits, h.spending(view, c).Today); v != nil {
		err = errors.Join(err, claude.WriteStop(h.Out, "heartbeat: "+v.Figures+" "+inbox.LimitOfDay))
	}
	return err
}

func (h *hook) isTurn(session, prompt string) bool {
	return h.input.SessionID == session && h.input.PromptID == prompt
}

// judgeSpending compares what the session has spent so far with the limits. The client may run tools before it writes the
// answer that asked for them. Close to a limit the hook waits for that answer. If it does not come, it counts as much as
// the largest one so far.
func (h *hook) judgeSpending(view *inbox.View, d *inbox.Delivery, l price.Plan) (*recovery.Over, error) {
	for began := time.Now(); ; time.Sleep(answerPoll) {
		c, err := h.count(view, h.input.ToolUse)
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

// someMore estimates what n more requests cost, each as much as the largest so far.
func someMore(c *meter.Counted, n int64) price.Amount {
	return price.Amount{Nanos: n * c.Largest.Nanos, Dollars: c.Largest.Nanos > 0, Tokens: price.Tokens{Input: n * c.Largest.Tokens.Sum()}}
}

func (h *hook) judgeWith(view *inbox.View, d *inbox.Delivery, l price.Plan, c *meter.Counted, n int64) *recovery.Over {
	spent := h.spending(view, c)
	for _, a := range []*price.Amount{&spent.Entry, &spent.Here, &spent.Alone, &spent.Today} {
		*a = a.Plus(someMore(c, n))
	}
	return recovery.Judge(d, l, spent)
}

// stopTurn settles the entry in flight, and has the client end the turn and the launcher end the session.
func (h *hook) stopTurn(v *recovery.Over) error {
	why := ""
	_, err := h.transact(context.Background(), inbox.Mark{}, func(tx *inbox.Tx, _ inbox.Mark) (outcome, string, error) {
		d := tx.InFlight()
		if d == nil || v.Of(d) == nil || !h.isTurn(d.SessionID, d.PromptID) {
			if prompt, stopped := tx.In(h.input.SessionID).Stopped(); prompt == h.input.PromptID {
				why = stopped // another hook of this turn was faster
			}
			return leave, "", nil
		}
		h.notePosition(tx)
		h.warnUncounted(meter.ChargeTurn(tx, h.input.SessionID))
		why = fmt.Sprintf("heartbeat: entry %s was stopped: %s", words.Name(d.ID(), d.EntryID), v.Figures)
		_, err := h.settle(tx, recovery.Sight{Over: v, Charged: true})
		tx.In(d.SessionID).StopTurn(d, why)
		return 0, "", err
	})
	if why == "" || err != nil {
		return err
	}
	return h.printStop(why)
}

// printStop has the client end the turn and show why, and the launcher end the session.
func (h *hook) printStop(why string) error {
	err := claude.WriteStop(h.Out, why)
	if h.SignalFile != "" {
		err = errors.Join(err, disk.Touch(h.SignalFile))
	}
	return err
}
