package hook

import (
	"context"
	"errors"

	"heartbeat/internal/cli"

	"heartbeat/inbox"
	"heartbeat/internal/words"
	"heartbeat/orchestrate/effect"
	recovery "heartbeat/recover"
)

// outcome is what one look at the inbox came to.
type outcome int

const (
	delivered outcome = iota + 1 // the decision is printed
	approved                     // nothing is to be delivered in this turn
	empty                        // nothing waits
	held                         // delivery is paused
	torn                         // a last line waits for its newline
	leave                        // another hook acted on this very Stop
	resting                      // the entry in flight waits for tasks in the background
	unclear                      // the transcript may tell more soon
	more                         // so much was set aside that others come first
)

// stop acts on the end of a turn: it settles what was in flight, and delivers
// what waits.
func (h *hook) stop() int {
	var still inbox.Mark
	for {
		o, err := h.tick(context.Background(), still)
		if err != nil {
			return h.failed(err)
		}
		switch o {
		case leave, resting:
			return cli.ExitOK
		case delivered:
			h.passRuns(context.Background())
			return cli.ExitOK
		case torn:
			if still, err = h.awaitStill(); err != nil {
				return h.failed(err)
			}
			continue
		case more:
			continue
		case empty:
			if h.runs != nil && h.runs.Advance(context.Background()) {
				continue
			}
		case held, approved:
			h.passRuns(context.Background())
		}
		if o != approved && h.Mode == ModePersist {
			return h.persist()
		}
		return h.approve()
	}
}

// tick is one transaction of a hook that ends the turn itself.
func (h *hook) tick(ctx context.Context, still inbox.Mark) (outcome, error) {
	return h.transact(ctx, func(tx *inbox.Tx) (outcome, string, error) { return h.decide(tx, still) }, h.print)
}

// decision is what one look at the inbox comes to, and the text to hand over.
type decision func(*inbox.Tx) (outcome, string, error)

// transact commits what decide comes to, and then hands over the text that it
// delivers. Where the transcript has to tell first, it looks again.
func (h *hook) transact(ctx context.Context, decide decision, hand func(context.Context, *inbox.Tx, string) error) (outcome, error) {
	for {
		o, err := h.transactOnce(ctx, decide, hand)
		if errors.Is(err, errNeedsRuns) && ctx.Err() == nil {
			err = h.becomeFull()
		}
		if err != nil || o != unclear {
			return o, err
		}
		h.awaitTranscript(ctx)
	}
}

// transactOnce is one transaction. Once ctx is done nothing is taken any more.
func (h *hook) transactOnce(ctx context.Context, decide decision, hand func(context.Context, *inbox.Tx, string) error) (outcome, error) {
	h.again, h.settled, h.answered = 0, nil, nil
	tx, err := h.box.Begin(ctx)
	if err != nil {
		return 0, err
	}
	say := h.holdNotes()
	o, text, err := decide(tx)
	if err == nil && o == delivered {
		err = h.stillWanted(ctx)
	}
	if err == nil && o != leave && o != unclear {
		err = tx.Commit()
	}
	if err == nil && o == delivered {
		err = hand(ctx, tx, text)
	}
	if err == nil {
		h.forgetSpill(tx.InFlight())
	}
	if dropped := errors.Is(err, errNeedsRuns); dropped {
		say(false)
	} else {
		say(true)
		h.aside = inbox.AddSetAside(h.aside, tx.SetAside()...)
	}
	if err != nil || o != more {
		h.noteAside()
	}
	return o, errors.Join(err, h.end(tx))
}

// noteAside says what was set aside since it was said last.
func (h *hook) noteAside() {
	for _, s := range h.aside {
		h.Note("%s", s)
	}
	h.aside = nil
}

func (h *hook) decide(tx *inbox.Tx, still inbox.Mark) (outcome, string, error) {
	o, err := h.endTurn(tx)
	if err != nil || o != 0 {
		return o, "", err
	}
	o, e, err := h.next(tx, still)
	if err != nil || o != 0 {
		return o, "", err
	}
	if _, err := tx.Deliver(e, h.recipient(e)); err != nil {
		return 0, "", err
	}
	h.says = h.announcement(e)
	return delivered, introduce(h.Preamble, effect.Text(e)), nil
}

// endTurn settles what was in flight, as the end of this turn tells. No outcome
// means that the session may have another entry.
func (h *hook) endTurn(tx *inbox.Tx) (outcome, error) {
	session := ""
	if h.input != nil {
		session = h.input.SessionID
		if err := tx.StopAsking(session); err != nil {
			return 0, err
		}
	}
	if d := tx.InFlight(); d != nil {
		verdict := h.judge(tx, d)
		switch verdict {
		case sameStop, pending:
			return leave, nil
		case unsure:
			return unclear, nil
		case answered:
			if rests, err := h.holdForTasks(tx, d); rests || err != nil {
				return resting, err
			}
		}
		if busy, err := h.isWithAnother(tx, d, verdict); err != nil || busy {
			return held, err
		}
		if err := h.settleEntry(tx, verdict); err != nil {
			return 0, err
		}
	}
	if h.MaxEntries > 0 && tx.Acknowledged(session) >= h.MaxEntries {
		return approved, nil
	}
	return 0, nil
}

// next is the entry to deliver, or why there is none.
func (h *hook) next(tx *inbox.Tx, still inbox.Mark) (outcome, inbox.Entry, error) {
	if is, err := h.isHeld(tx); err != nil || is {
		return held, inbox.Entry{}, err
	}
	for range mostElsewhere {
		e, err := tx.Next(still)
		switch {
		case errors.Is(err, inbox.ErrEmpty):
			return empty, e, nil
		case errors.Is(err, inbox.ErrTorn):
			return torn, e, nil
		case errors.Is(err, inbox.ErrMore):
			return more, e, nil
		case err != nil:
			return 0, e, err
		}
		why, err := h.settledElsewhere(e)
		if err != nil || why == "" {
			return 0, e, err
		}
		h.Note("entry %s is settled without a delivery: %s", e.ID, why)
		if err := tx.ResolveElsewhere(e, why); err != nil {
			return 0, e, err
		}
	}
	return more, inbox.Entry{}, nil
}

// mostElsewhere is how many entries one commit settles that were resolved elsewhere.
const mostElsewhere = 100

// acknowledge settles the entry in flight as answered, unless it is an effect's
// that still has no result: then it is delivered again, while its attempts last.
func (h *hook) acknowledge(tx *inbox.Tx) error {
	d := tx.InFlight()
	e := recovery.EvidenceOf(d)
	reply := h.replyTo(d, e)
	missing, err := h.takeResult(d, reply)
	switch {
	case err != nil:
		return err
	case missing == "":
		return tx.AcknowledgeWith(reply, h.tasksOf(e))
	case d.Attempt >= h.Orphan.MaxAttempts:
		h.Note("the entry %s is set aside: %s", words.Name(d.ID(), d.EntryID), missing)
		return tx.DeadLetter(inbox.ReasonUnresolved)
	}
	return tx.GiveBackFor(missing, true)
}

func (h *hook) settleEntry(tx *inbox.Tx, v verdict) error {
	h.settled = tx.InFlight()
	h.lastSettled = h.settled.ID()
	switch v {
	case answered:
		h.answered = h.settled
		return h.acknowledge(tx)
	}
	o := h.Orphan.Options()
	o.Overcome = true
	if o.Unreached = h.neverReached; h.input == nil {
		o.Unreached, o.Finished = nil, nil // nobody wrote a transcript
	}
	if v == interrupted {
		o.Reason = inbox.ReasonInterrupted
	}
	report, err := recovery.Settle(tx, o)
	if err == nil {
		h.Note("%s", report)
	}
	return err
}
