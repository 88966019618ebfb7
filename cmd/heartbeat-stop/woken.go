package main

import (
	"heartbeat/cmd/heartbeat-stop/why"
	"heartbeat/inbox"
	"heartbeat/internal/claude"
	"heartbeat/internal/flat"
)

// wakeEvidence is kept with a delivery that was to wake its session.
type wakeEvidence struct {
	Woken bool
	// Bound says that the client took the text up: the delivery's session and
	// prompt are those of the turn that it became.
	Bound bool
	// Spill is the file that the text is in, where it was too long to be handed
	// over whole.
	Spill string
	// ClientStart tells the client's process from a later one of its number.
	ClientStart int64
	// Namespace is where the client's number is that process's.
	Namespace string
}

func (w wakeEvidence) encode(o *flat.Object) {
	if !w.Woken {
		return
	}
	o.Bool("woken", true)
	o.Bool("bound", w.Bound)
	o.Text("spill_file", w.Spill)
	o.Int("client_start", w.ClientStart)
	o.Text("pid_namespace", w.Namespace)
}

func wakeEvidenceOf(m *flat.Members) wakeEvidence {
	return wakeEvidence{
		Woken: m.Bool("woken"), Bound: m.Bool("bound"),
		Spill: m.String("spill_file"), ClientStart: m.Int("client_start"), Namespace: m.String("pid_namespace"),
	}
}

// handed is what the client's prompt has in it when it takes the entry up.
func (w wakeEvidence) handed(d *inbox.Delivery) string {
	if w.Spill != "" {
		return w.Spill
	}
	return d.Text()
}

// clientRuns reports whether the very process lives that the entry was handed to.
func (e evidence) clientRuns() bool { return lifeOfClient(e) == why.Alive }

// clientGone reports whether it is certain that it does not.
func (e evidence) clientGone() bool {
	life := lifeOfClient(e)
	return life == why.Gone || life == why.Rebooted
}

// sameClient reports whether the entry was handed to the client around this hook:
// its session may have another name by now.
func (h *hook) sameClient(d *inbox.Delivery, e evidence) bool {
	if pid := claude.PID(); pid != 0 && e.Client != 0 {
		return int64(pid) == e.Client && e.clientRuns()
	}
	return h.input.SessionID == d.SessionID
}

// judgeWoken is judge for an entry that was to wake its session. The turn that
// it became has the prompt_id with which the client announced it. Until then the
// client keeps it behind what a person has typed.
func (h *hook) judgeWoken(tx *inbox.Tx, d *inbox.Delivery, e evidence) verdict {
	in := h.input
	switch {
	case e.Bound && in.SessionID == d.SessionID && in.PromptID == d.PromptID:
		return answered
	case !e.Bound && in.SessionID == d.SessionID && in.PromptID != "" && e.seen(d).TookUp(in.PromptID):
		return answered // the announcement was missed
	case !h.sameClient(d, e) && e.clientRuns():
		return pending // another session is at it
	case !e.Bound && h.sameClient(d, e):
		return pending
	}
	return h.leftBehind(tx, d)
}

// neverTakenUp reports whether it is certain that the client did not take the
// text up. It announces that to a hook before it asks the model; that the hook
// works in the session is known from the prompt before.
func neverTakenUp(tx *inbox.Tx, d *inbox.Delivery, e evidence) bool {
	s, err := tx.Session(d.SessionID)
	return err == nil && s.PromptedAt != nil && !e.Bound && !e.seen(d).TookUp("")
}

// seen asks the session's transcript.
func (e evidence) seen(d *inbox.Delivery) claude.Delivery {
	return claude.Delivery{Path: e.Transcript, Size: max(0, e.TranscriptSize), Text: e.handed(d), At: d.DeliveredAt}
}
