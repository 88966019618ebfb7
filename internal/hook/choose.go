package hook

import (
	"errors"
	"time"

	recovery "heartbeat/recover"

	"heartbeat/inbox"
)

// next is the entry to deliver, or why there is none.
func (h *hook) next(tx *inbox.Tx, still inbox.Mark) (outcome, inbox.Entry, error) {
	asker := h.asker()
	hold, err := recovery.Held(tx, asker)
	if err != nil {
		return 0, inbox.Entry{}, err
	}
	if h.isHeld(hold); hold.Any() {
		return held, inbox.Entry{}, nil
	}
	switch e, err := recovery.Next(tx, asker, still); {
	case errors.Is(err, inbox.ErrEmpty):
		return empty, e, nil
	case errors.Is(err, inbox.ErrTorn):
		return torn, e, nil
	case errors.Is(err, inbox.ErrMore):
		return more, e, nil
	default:
		return 0, e, err
	}
}

// isHeld says once why delivery is held, and once that it continues.
func (h *hook) isHeld(hold recovery.Hold) {
	pause, backoff := hold.Paused, hold.Backoff
	said, end := "", ""
	if backoff != nil {
		said, end = backoff.String(), inbox.BackoffEnds
		h.lookAgainIn(time.Until(backoff.Until))
	}
	if pause != nil {
		said, end = pause.String(), pause.Ends()
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
}
