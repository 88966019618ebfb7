package main

import (
	"context"
	"errors"
	"fmt"

	"heartbeat/inbox"
	"heartbeat/internal/claude"
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
		case delivered, leave:
			return exitOK
		case torn:
			if still, err = h.awaitStill(); err != nil {
				return h.failed(err)
			}
			continue
		case empty, held:
			if h.mode == modePersist {
				return h.persist()
			}
		}
		return h.approve()
	}
}

// tick is one transaction. The decision is printed after its commit: once
// printed it counts as delivered. Once ctx is done nothing is taken any more.
func (h *hook) tick(ctx context.Context, still inbox.Mark) (outcome, error) {
	tx, err := h.box.Begin(ctx)
	if err != nil {
		return 0, err
	}
	o, text, err := h.decide(tx, still)
	if err == nil {
		err = h.stillWanted(ctx)
	}
	if err == nil && o != leave {
		err = tx.Commit()
	}
	if err == nil && o == delivered {
		err = claude.WriteBlock(h.out, text, claude.Form(h.form))
		if err != nil {
			err = fmt.Errorf("print the decision: %w: the entry stays in flight", err)
		}
	}
	return o, errors.Join(err, h.end(tx))
}

func (h *hook) decide(tx *inbox.Tx, still inbox.Mark) (outcome, string, error) {
	session := ""
	if h.input != nil {
		session = h.input.SessionID
	}
	if d := tx.InFlight(); d != nil {
		verdict := h.judge(tx, d)
		if verdict == sameStop {
			return leave, "", nil
		}
		if err := h.settleEntry(tx, verdict); err != nil {
			return 0, "", err
		}
	}
	if h.maxEntries > 0 && tx.Acknowledged(session) >= h.maxEntries {
		return approved, "", nil
	}
	pause, err := tx.Paused()
	if err != nil {
		return 0, "", err
	}
	if h.notePause(pause); pause != nil {
		return held, "", nil
	}
	e, err := tx.Next(still)
	switch {
	case errors.Is(err, inbox.ErrEmpty):
		return empty, "", nil
	case errors.Is(err, inbox.ErrTorn):
		return torn, "", nil
	case err != nil:
		return 0, "", err
	}
	if _, err := tx.Deliver(e, h.recipient()); err != nil {
		return 0, "", err
	}
	return delivered, e.Text, nil
}

func (h *hook) settleEntry(tx *inbox.Tx, v verdict) error {
	switch v {
	case answered:
		reply := ""
		if h.input != nil {
			reply = h.input.LastMessage
		}
		return tx.Acknowledge(reply)
	}
	o := h.orphan.options()
	if h.input != nil {
		o.Unreached = h.neverReached
	}
	if v == interrupted {
		o.Reason = inbox.ReasonInterrupted
	}
	report, err := recovery.Settle(tx, o)
	if err == nil {
		h.note("%s", report)
	}
	return err
}
