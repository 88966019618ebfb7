package hook

import (
	"bytes"

	"heartbeat/inbox"
	"heartbeat/internal/why"
	"heartbeat/internal/words"
)

// keptNotes keeps what is said while nobody may hear it, up to a bound: a hook in
// the background may live for weeks.
type keptNotes struct{ bytes.Buffer }

func (k *keptNotes) Write(b []byte) (int, error) {
	const most = 64 << 10
	if k.Len()+len(b) <= most {
		return k.Buffer.Write(b)
	}
	return len(b), nil
}

// complainOnce leaves out what was said last, and reports whether it did not.
func (h *hook) complainOnce(err error) bool {
	said := err.Error()
	if said == h.complained {
		return false
	}
	h.complained = said
	h.Complain(err)
	return true
}

// tellOnce is complainOnce for an error of which nobody would hear while the
// session sleeps: it is recorded, if that is possible, for status and log.
func (h *hook) tellOnce(err error) {
	if h.complainOnce(err) {
		h.record(func(tx *inbox.Tx) error {
			return tx.FailSession(h.input.SessionID, why.HookError, words.Sentence(err.Error()))
		})
	}
}

// holdNotes keeps back what is said of a transaction that may be dropped: the full
// command, which then looks again, says it. The function that it returns ends that.
func (h *hook) holdNotes() (say func(bool)) {
	if h.open != nil {
		return func(bool) {}
	}
	stderr, held := h.Err, new(bytes.Buffer)
	h.Err = held
	return func(is bool) {
		if h.Err = stderr; is {
			_, _ = held.WriteTo(stderr) // nobody is left to tell
		}
	}
}
