package hook

import (
	"time"

	"heartbeat/inbox"
	"heartbeat/internal/why"
)

// isHeld reports whether nothing is to be delivered now, and says once why, and
// once that it goes on.
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
