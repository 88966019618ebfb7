package main

import (
	"math/rand/v2"
	"time"

	"heartbeat/inbox"
	"heartbeat/internal/claude"
	"heartbeat/internal/limit"
	recovery "heartbeat/recover"
)

// stopFailure acts on a turn that ended in an error, where no background wiring
// hands the entry over again: the launcher gets its signal, and decides.
func (h *hook) stopFailure() int {
	h.record(func(tx *inbox.Tx) error { return tx.Fail(h.input.SessionID, h.input.Error, h.input.LastMessage) })
	return h.signal()
}

// failTurn settles the entry whose turn ended in an error, and says how long
// nothing is to be delivered.
func (h *hook) failTurn(tx *inbox.Tx) (outcome, error) {
	in := h.input
	failure := &inbox.Failure{Error: in.Error, Message: in.LastMessage, At: time.Now().UTC()}
	remedy := claude.RemedyFor(in.Error, in.LastMessage)
	ours, err := h.settleFailed(tx, remedy, failure)
	if err != nil {
		return 0, err
	}
	if remedy.Person {
		_, err := tx.Pause(failure.String(), nil)
		return 0, err
	}
	return 0, h.backOff(tx, remedy, failure, ours)
}

// settleFailed gives the entry back whose turn it was, if one was, or sets it
// aside once its attempts are used up.
func (h *hook) settleFailed(tx *inbox.Tx, remedy claude.Remedy, failure *inbox.Failure) (ours bool, err error) {
	d, of := tx.InFlight(), verdict(0)
	if d != nil {
		of = h.judge(tx, d)
	}
	if of != answered {
		err = tx.FailSession(h.input.SessionID, failure.Error, failure.Message)
		if err == nil && (of == interrupted || of == orphaned) {
			err = h.settleEntry(tx, of)
		}
		return false, err
	}
	if err := tx.Fail(d.SessionID, failure.Error, failure.Message); err != nil {
		return true, err
	}
	h.settled = d
	if remedy.Counts && d.Attempt >= h.orphan.maxAttempts {
		report, err := recovery.Settle(tx, recovery.Options{Policy: recovery.Retry, MaxAttempts: h.orphan.maxAttempts})
		if err == nil {
			h.note("%s", report)
		}
		return true, err
	}
	return true, tx.GiveBackFor(failure.String(), remedy.Counts)
}

// maxResetJitter bounds how long after the end of a limit the next try comes:
// everybody who waited for it would come at once.
const maxResetJitter = 30 * time.Second

// untilReset is how long to wait for the end of a limit.
func untilReset(wait time.Duration) time.Duration {
	wait = max(wait, 0)
	return wait + time.Second + time.Duration(rand.Float64()*float64(min(wait/5, maxResetJitter)))
}

// backOff holds delivery. A turn that was no entry's, while delivery is held
// already, tells nothing new.
func (h *hook) backOff(tx *inbox.Tx, remedy claude.Remedy, failure *inbox.Failure, ours bool) error {
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
	if reset, ok := limit.End(failure.Message, now); ok && !remedy.Counts {
		length, named = untilReset(reset.Sub(now)), true
	}
	if held != nil && !named && !ours {
		return nil
	}
	_, err = tx.BackOff(length, streak, named, failure)
	return err
}
