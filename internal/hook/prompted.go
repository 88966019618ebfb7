package hook

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"heartbeat/inbox"
	"heartbeat/internal/claude"
	"heartbeat/internal/cli"
	"heartbeat/internal/machine"
	"heartbeat/internal/money/meter"
	recovery "heartbeat/recover"
)

// prompted acts on a prompt that the session is about to send to the model. If an entry woke the session, the client
// makes a prompt of it, and the entry then belongs to that prompt's turn. Either way the session is at work, and
// nothing wakes it until its next Stop.
func (h *hook) prompted(tx *inbox.Tx) error {
	in := h.input
	if d := tx.InFlight(); d != nil {
		e := h.evidenceOf(d)
		if e.Woken && !e.Bound && h.sameClient(d, e) && claude.IsWakePrompt(in.Prompt, e.Handed(d)) {
			e.Bound, e.Before = true, tx.In(in.SessionID).Known().PromptID
			h.placeTurn(tx)
			if err := tx.Bind(inbox.Recipient{SessionID: in.SessionID, PromptID: in.PromptID, Evidence: e.Encode()}); err != nil {
				return err
			}
		}
		h.leaveTurn(tx)
	}
	if w, err := tx.Waiter(); err != nil {
		return err
	} else if w != nil && w.SessionID == in.SessionID {
		tx.StopWaiting()
	}
	return tx.In(in.SessionID).Prompt(in.PromptID)
}

// asksElse reports whether a person has begun another turn in the session that has the entry in flight. That turn's
// cost is not the entry's. The report of a task that the entry left running is still the entry's turn. Without a
// transcript nothing is counted.
func (h *hook) asksElse(d *inbox.Delivery) bool {
	in := h.input
	return in.TranscriptPath != "" && in.SessionID == d.SessionID && in.PromptID != "" && d.PromptID != "" && in.PromptID != d.PromptID &&
		!strings.HasPrefix(strings.TrimSpace(in.Prompt), claude.TaskNotification)
}

// leaveTurn stops charging the entry in flight if a person has begun another turn.
func (h *hook) leaveTurn(tx *inbox.Tx) {
	if d := tx.InFlight(); d != nil && h.asksElse(d) {
		h.placeTurn(tx)
		tx.Money().LeaveTurn()
	}
}

// askedElse does what [hook.leaveTurn] does for a prompt that matters in no other way. It looks without the lock
// first, because mostly no entry is in flight.
func (h *hook) askedElse() int {
	elsewhere := false
	h.glance(func(view *inbox.View) { d := view.InFlight(); elsewhere = d != nil && h.asksElse(d) })
	if !elsewhere {
		return cli.ExitOK
	}
	return h.record(func(tx *inbox.Tx) error { h.leaveTurn(tx); return nil })
}

// waitsForPerson reports whether a client sends this type of notification while it waits for a person: for a permission,
// an answer, or what a tool's server asks (elicitation_dialog, elicitation_url_dialog).
func waitsForPerson(notification string) bool {
	return strings.HasSuffix(notification, "permission_prompt") || strings.HasSuffix(notification, "_dialog") || notification == "agent_needs_input"
}

// notified records that the session waits for a person. Other notifications tell an operator nothing.
func (h *hook) notified() int {
	in := h.input
	if !waitsForPerson(in.Notification) {
		return cli.ExitOK
	}
	return h.record(func(tx *inbox.Tx) error { return tx.In(in.SessionID).Ask(in.Notification, in.Message) })
}

// startedWith binds the entry that a client was started with to the prompt that the client made of it. The Stop of
// that prompt brings the answer.
func (h *hook) startedWith(tx *inbox.Tx) error {
	d, in := tx.InFlight(), h.input
	if d == nil {
		return nil
	}
	e := h.evidenceOf(d)
	another := d.SessionID != "" && d.SessionID != in.SessionID
	switch {
	case e.Prompted && !e.IsBound() && e.Start == h.Start && !another && in.Prompt == d.Text():
		h.placeTurn(tx)
		e.BoundSeq = tx.Seq()
		e.Process = inbox.ProcessOf(h.clientPID())
		e.Transcript, e.TranscriptSize = in.TranscriptPath, recovery.StartSize(tx, d, in.SessionID, in.TranscriptPath)
		if e.TranscriptSize < 0 && in.PromptID != "" {
			e.TranscriptSize = 0 // the prompt's id tells its lines from older ones
		}
		return tx.Bind(inbox.Recipient{SessionID: in.SessionID, PromptID: in.PromptID, Evidence: e.Encode()})
	case strings.HasPrefix(strings.TrimSpace(in.Prompt), claude.TaskNotification):
		return h.toldOfTask(tx)
	}
	return nil
}

// defaultBackground is how long an entry waits for the tasks that its turn left running.
const defaultBackground = 30 * time.Minute

// holdForTasks reports whether the entry in flight waits for tasks that its turn left running in the background. The
// turn may end; the session goes on, and the client sends it a prompt when a task ends.
func (h *hook) holdForTasks(tx *inbox.Tx, d *inbox.Delivery) (bool, error) {
	if h.input == nil || h.Rewake || h.Mode != ModeDrain || h.Background == 0 || d.Verdict != nil {
		return false, nil // the agent's verdict needs no waiting
	}
	e := h.evidenceOf(d)
	running := e.Running(h.input.Tasks)
	if len(running) == 0 || e.Over(time.Duration(h.Background)) {
		return false, nil
	}
	e.TaskWait = e.Wait(running, h.replyTo(d, e))
	return true, tx.Bind(inbox.Recipient{SessionID: d.SessionID, PromptID: d.PromptID, Evidence: e.Encode()})
}

// replyTo returns what the entry's last turn said. The turn that ends may be a person's instead.
func (h *hook) replyTo(d *inbox.Delivery, e recovery.Evidence) string {
	switch {
	case h.input == nil:
		return ""
	case e.Held && h.input.PromptID != d.PromptID:
		return e.HeldReply
	case claude.ReplySum(h.input.LastMessage) == e.Reply && e.ByBlock(d).Seen().Silent():
		return ""
	}
	return h.input.LastMessage
}

// toldOfTask binds the entry in flight to the turn in which the session learns how one of the entry's tasks ended.
func (h *hook) toldOfTask(tx *inbox.Tx) error {
	d := tx.InFlight()
	if d == nil || d.SessionID != h.input.SessionID || !h.evidenceOf(d).TellsOf(h.input.Prompt) {
		return nil
	}
	return tx.Bind(inbox.Recipient{SessionID: d.SessionID, PromptID: h.input.PromptID, Evidence: d.Evidence})
}

// endSession notes the end of a session. An entry that waits for its tasks counts as answered, because the tasks end
// with the session.
func (h *hook) endSession(tx *inbox.Tx) error {
	h.placeTurn(tx)
	h.uncounted(meter.ChargeTurn(tx, h.input.SessionID))
	if d := tx.InFlight(); d != nil && d.SessionID == h.input.SessionID && !h.isElsewhere(tx) {
		e := h.evidenceOf(d)
		if e.Held {
			sight := recovery.Sight{Ended: true, Reply: e.HeldReply, Tasks: h.tasksOf(e), Charged: true}
			if _, err := h.settle(tx, sight); err != nil {
				return err
			}
		} else if at, name, message, failed := e.ByBlock(d).Seen().Failed(); failed {
			if err := tx.In(d.SessionID).FailAt(at, name, message); err != nil {
				return err
			}
		}
	} else if find := h.client().LastFailed; find != nil {
		if name, message, failed := find(h.input.TranscriptPath); failed {
			err := tx.In(h.input.SessionID).FailAlone(name, message)
			if err == nil {
				err = recovery.HoldDelivery(tx, &inbox.Failure{Error: name, Message: message, At: time.Now().UTC()}, false)
			}
			if err != nil {
				return err
			}
		}
	}
	s := tx.In(h.input.SessionID).Known()
	if pid := h.clientPID(); pid != 0 && pid != s.PID && s.Life() == machine.Alive {
		return nil // it is open in two clients, and goes on in the other one
	}
	return tx.In(h.input.SessionID).End()
}

// tasksOf returns an entry's tasks as its result keeps them, or nil. The end of the session cuts all of them off.
func (h *hook) tasksOf(e recovery.Evidence) json.RawMessage {
	var tasks []inbox.Task
	if h.input != nil && e.Held && json.Unmarshal([]byte(e.Tasks), &tasks) != nil || len(tasks) == 0 {
		return nil
	}
	for i := range tasks {
		tasks[i].CutOff = h.input.Event == claude.EventSessionEnd || slices.ContainsFunc(h.input.Tasks, func(t claude.Task) bool { return t.ID == tasks[i].ID })
	}
	raw, _ := json.Marshal(tasks) // they were JSON before
	return raw
}
