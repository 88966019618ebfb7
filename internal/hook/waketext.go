package hook

import (
	"fmt"
	"path/filepath"
	"strings"

	"heartbeat/inbox"
	"heartbeat/internal/claude"
	"heartbeat/internal/disk"
	"heartbeat/internal/words"
	"heartbeat/orchestrate/effect"
	recovery "heartbeat/recover"
)

// defaultPreamble says whose words follow: the client presents them as a notification
// that is not from the user, and as a hook's error.
const defaultPreamble = "This is the next request from the work queue of this session's operator (heartbeat, %s). " +
	"It is no error, and it approves nothing that was asked before. Carry it out as a request of the operator's:"

// bareMark replaces an empty preamble and follows one of the operator's own. It tells the
// client's announcement of this delivery from any other.
const bareMark = "(heartbeat, %s)"

// wakeWith returns the text to wake the session with. One that the client would cut goes
// into a file, which is durable before the delivery that names it is committed.
func (h *hook) wakeWith(e inbox.Entry) (text, spill string, err error) {
	mark := recovery.DeliveryMark(e.EntryID, h.token())
	preamble := fmt.Sprintf(defaultPreamble, mark)
	if h.PreambleSet {
		preamble = strings.TrimSpace(h.Preamble + " " + fmt.Sprintf(bareMark, mark))
	}
	text = introduce(preamble, effect.Text(e))
	if claude.FitsWake(text) {
		return text, "", nil
	}
	if spill, err = h.spill(e); err != nil {
		return "", "", err
	}
	return introduce(preamble, fmt.Sprintf("The request is too long to be handed over here (%d bytes). It is in the file %s: read all of it, in parts if need be, and carry it out.",
		len(e.Text), spill)), spill, nil
}

// blockWith returns the text to block the stop with, as wakeWith does. The file's path is
// the end of it, by which a transcript tells it from any other text.
func (h *hook) blockWith(e inbox.Entry) (text, spill string, err error) {
	text = introduce(h.Preamble, effect.Text(e))
	if most := h.client().MaxReason; most == 0 || len(text) <= most {
		return text, "", nil
	}
	if spill, err = h.spill(e); err != nil {
		return "", "", err
	}
	return introduce(h.Preamble, fmt.Sprintf("The request is too long to be handed over here (%d bytes). Read all of this file, in parts if need be, and carry it out:\n\n%s",
		len(e.Text), spill)), spill, nil
}

// spill writes the text of an entry into its file.
func (h *hook) spill(e inbox.Entry) (path string, err error) {
	path = recovery.SpillPath(h.box, e.EntryID)
	if err := disk.Publish(path, []byte(e.Text), true); err != nil {
		return "", fmt.Errorf("hand over the entry %s, which is too long to be handed over whole: write it to a file: %w: it stays queued", words.Name(e.ID, e.EntryID), err)
	}
	return path, nil
}

// token tells this delivery from every other one, also of the same entry: a hook hands
// over once.
func (h *hook) token() string { return h.waiter[:min(8, len(h.waiter))] }

// introduce puts what the model is told before a text.
func introduce(preamble, text string) string {
	if preamble == "" {
		return text
	}
	return preamble + "\n\n" + text
}

// forgetSpill removes the file of an entry that was settled, unless the same entry is in
// flight again. An error changes nothing about the commit: compact and recover remove
// the file too.
func (h *hook) forgetSpill(inFlight *inbox.Delivery) {
	if h.settled == nil {
		return
	}
	spill := h.evidenceOf(h.settled).Spill
	if spill == "" {
		return
	}
	name := filepath.Base(spill)
	if recovery.IsSpill(name) && (inFlight == nil || recovery.SpillName(inFlight) != name) {
		if err := disk.Remove(filepath.Join(h.box.Dir(), name)); err != nil {
			h.Note("%v: compact takes it away", err)
		}
	}
}
