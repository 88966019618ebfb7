package hook

import (
	"errors"
	"time"

	"heartbeat/inbox"
	"heartbeat/internal/enforce"
	"heartbeat/internal/why"
)

// next is the entry to deliver, or why there is none.
func (h *hook) next(tx *inbox.Tx, still inbox.Mark) (outcome, inbox.Entry, error) {
	tx.NoteLimits(h.Limits.Entry, h.Limits.Session, h.Limits.Day)
	if err := enforce.NoteRuns(tx, &h.Runs); err != nil {
		return 0, inbox.Entry{}, err
	}
	if h.Limits.Day.Any() { // or what was spent today is not even asked for
		if v := enforce.JudgeDay(h.Limits, tx.Today()); v != nil {
			if err := enforce.PauseForDay(tx, v); err != nil {
				return 0, inbox.Entry{}, err
			}
		}
	}
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
		if err != nil {
			return 0, e, err
		}
		if why == "" {
			refused, err := enforce.Refuse(tx, h.box, e, &h.Limits, h.Runs.MaxCost)
			if err != nil || !refused {
				return 0, e, err
			}
			continue
		}
		h.Note("entry %s is settled without a delivery: %s", e.ID, why)
		if err := tx.ResolveElsewhere(e, why); err != nil {
			return 0, e, err
		}
	}
	return more, inbox.Entry{}, nil
}

// mostElsewhere bounds how many entries that were resolved elsewhere one commit settles.
const mostElsewhere = 100

// isHeld reports whether delivery is held, by a pause or a back-off. It says so once, and
// once when delivery continues.
func (h *hook) isHeld(tx *inbox.Tx) (bool, error) {
	pause, err := tx.Paused()
	if err != nil {
		return false, err
	}
	backoff, err := tx.Backoff()
	if err != nil {
		return false, err
	}
	said, end := "", ""
	if backoff != nil {
		said, end = why.Backoff(*backoff), why.BackoffEnds
		h.lookAgainIn(time.Until(backoff.Until))
	}
	if pause != nil {
		said, end = why.Pause(*pause), why.PauseEnds(*pause)
		if pause.Until != nil {
			h.lookAgainIn(time.Until(*pause.Until))
		}
	}
	switch {
	case said == h.paused:
	case said == "":
		h.Note("delivery goes on: it was %s", h.paused)
	default:
		h.Note("%s: nothing is delivered until %s", said, end)
	}
	h.paused = said
	return said != "", nil
}
