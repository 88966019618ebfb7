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
	"heartbeat/internal/money/meter"
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
	h.keepCounting()
	if err != nil {
		h.Complain(fmt.Errorf("%w: the turn goes on", err))
	}
	return cli.ExitOK
}

// lookAtSpending is the usual case: it takes no lock and changes nothing but the count of
// what the session spends. It returns the limit that is reached, nil for none,
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

// judgeSpending holds against the limits what the session has spent by now.
func (h *hook) judgeSpending(view *inbox.View, d *inbox.Delivery, l budget.Plan) (*recovery.Over, error) {
	h.counting.cut = view.Position(h.input.SessionID, claude.TranscriptSize(h.input.TranscriptPath))
	s, missing, err := h.countBatch(view, d, l)
	if s == nil {
		return nil, err
	}
	v, errSpent := h.judgeWith(view, d, l, s, missing)
	return v, errors.Join(errSpent, err)
}

// countBatch counts what the session has spent. The client may write the answer that asked
// for these tools after it has run them: close to a limit the hook waits for it, and returns
// a guess at what is missing if it does not come.
func (h *hook) countBatch(view *inbox.View, d *inbox.Delivery, l budget.Plan) (s *meter.State, missing price.Amount, err error) {
	reading := meter.Reading{Session: h.input.SessionID, Transcript: h.input.TranscriptPath, Wait: meterWait(view, h.input.SessionID)}
	for began := time.Now(); ; time.Sleep(answerPoll) {
		s, err = meter.Advance(h.box.Dir(), reading)
		h.counting.found(view, h.input.SessionID, err)
		if s == nil || h.input.ToolUse == "" || s.HasTool(h.input.ToolUse, h.input.AgentID) {
			return s, price.Amount{}, err
		}
		one, known := s.Largest()
		more := price.Amount{Nanos: nearLimit * one.Nanos, Tokens: price.Tokens{Input: nearLimit * one.Tokens.Sum()}}
		reached, errNow := h.judgeWith(view, d, l, s, price.Amount{})
		near, errNear := h.judgeWith(view, d, l, s, more)
		if reached != nil || near == nil && known || errors.Join(errNow, errNear) != nil {
			return s, price.Amount{}, errors.Join(err, errNow, errNear)
		}
		if time.Since(began) >= lineWait {
			return s, one, err
		}
	}
}

// judgeWith judges what a count says, and more.
func (h *hook) judgeWith(view *inbox.View, d *inbox.Delivery, l budget.Plan, s *meter.State, more price.Amount) (*recovery.Over, error) {
	spending, err := view.Spending(charging.Reading(s))
	if err != nil {
		return nil, err
	}
	more.Dollars = s.Spent.Dollars // also where the entry's own requests have none yet
	spent := recovery.Spent{Spending: spending, Took: recovery.Took(d)}
	for _, a := range []*price.Amount{&spent.Entry, &spent.Here, &spent.Today} {
		*a = a.Plus(more)
	}
	return recovery.Judge(l, spent, d.Attempt), nil
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
		if err = h.chargeTurn(tx); err == nil {
			_, err = h.settle(tx, recovery.Sight{Over: v, Charged: true})
		}
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

// chargeTurn books what the turn has cost by now.
func (h *hook) chargeTurn(tx *inbox.Tx) error {
	tx.Position(h.input.SessionID, max(0, claude.TranscriptSize(h.input.TranscriptPath)), inbox.TurnUnknown)
	s, err := meter.Load(h.box.Dir(), h.input.SessionID)
	if s == nil {
		return err
	}
	return tx.Charge(charging.Reading(s))
}

// tellStopped has the client end the turn and say why, and the launcher end the session.
func (h *hook) tellStopped(why string) error {
	err := claude.WriteStop(h.Out, why)
	if h.SignalFile != "" {
		err = errors.Join(err, disk.Touch(h.SignalFile))
	}
	return err
}
