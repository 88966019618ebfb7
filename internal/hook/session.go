package hook

import (
	"errors"
	"strings"
	"time"

	"heartbeat/inbox"
	"heartbeat/internal/agent"
	"heartbeat/internal/claude"
	"heartbeat/internal/cli"
	"heartbeat/internal/machine"
	"heartbeat/internal/money/account"
	"heartbeat/internal/money/meter"
	recovery "heartbeat/recover"
)

// noteStart notes that the session began, and charges the sessions that have ended.
func (h *hook) noteStart(tx *inbox.Tx) error {
	if d := tx.InFlight(); d == nil || !h.isSecondClient(d) { // else the entry's turn continues in the first one
		h.notePosition(tx)
		h.warnUncounted(meter.NoteCharge(tx, "", recovery.LivingOwner(tx) != nil))
	}
	return tx.In(h.input.SessionID).Start(h.clientPID(), agent.StartNote(h.input.TranscriptPath, !h.Launched))
}

// startSession notes that the session began, and settles what a dead session left in flight.
func (h *hook) startSession(tx *inbox.Tx) (outcome, error) {
	err := h.noteStart(tx)
	f := h.flight(tx)
	if f == nil || err != nil {
		return 0, err
	}
	switch {
	case f.Life().Ended():
		_, err = h.settleEntry(tx, f, recovery.LeftBehind)
	case h.input.Source == "clear" && f.Bound && h.input.SessionID != f.Entry.SessionID && f.SameClient():
		_, err = h.settleEntry(tx, f, recovery.WentOn) // a turn that a person cut short with /clear ends without a Stop
	}
	return 0, err
}

// startWaiting makes this hook the one that waits, unless the session got a prompt while the hook started. The end of
// that prompt's turn starts the next hook.
func (h *hook) startWaiting(tx *inbox.Tx) (outcome, error) {
	session := tx.In(h.input.SessionID)
	s, pid := session.Known(), h.clientPID()
	if s.PromptedAfter(h.Began) {
		return held, nil
	}
	var err error
	if s.EndedAt != nil && pid != 0 && pid != s.PID { // it is open in two clients, and the other one has ended
		err = session.Start(pid, agent.StartNote(h.input.TranscriptPath, !h.Launched))
	}
	return 0, errors.Join(err, session.Wait(h.Waiter))
}

// notePrompt acts on a prompt that the session is about to send to the model. If an entry woke the session, the client
// makes a prompt of it, and the entry then belongs to that prompt's turn. Either way the session is at work, and
// nothing wakes it until its next Stop.
func (h *hook) notePrompt(tx *inbox.Tx) error {
	in := h.input
	if f := h.flight(tx); f != nil {
		if f.Woken && !f.Bound && f.SameClient() && claude.IsWakePrompt(in.Prompt, f.Handed(f.Entry)) {
			f.Bound, f.Before = true, tx.In(in.SessionID).Known().PromptID
			h.notePosition(tx)
			if err := tx.Bind(inbox.Recipient{SessionID: in.SessionID, PromptID: in.PromptID, Evidence: f.Encode()}); err != nil {
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

// isOtherTurn reports whether a person has begun another turn in the client that has the entry in flight, whose cost is
// not the entry's. The report of a task that the entry left running belongs to the entry's turn, which also continues
// beside a second client of the session. Without a transcript nothing is counted.
func (h *hook) isOtherTurn(d *inbox.Delivery) bool {
	in := h.input
	return in.TranscriptPath != "" && in.SessionID == d.SessionID && in.PromptID != "" && d.PromptID != "" && in.PromptID != d.PromptID &&
		!claude.IsTaskReport(in.Prompt) && !h.isSecondClient(d)
}

// isSecondClient reports whether another live client has the entry in flight. The host that starts this client is not one.
func (h *hook) isSecondClient(d *inbox.Delivery) bool {
	e := recovery.EvidenceOf(d)
	return d.SessionID == h.input.SessionID && !(e.Prompted && e.Start == h.Start) && e.PID != h.clientPID() && e.Process.Life() == machine.Alive
}

// leaveTurn stops charging the entry in flight if a person has begun another turn.
func (h *hook) leaveTurn(tx *inbox.Tx) {
	if d := tx.InFlight(); d != nil && h.isOtherTurn(d) {
		h.notePosition(tx)
		account.Of(tx).Leave(d)
	}
}

// otherPrompt is [hook.leaveTurn] for a prompt that matters in no other way. It checks without the lock first, because
// usually no entry is in flight.
func (h *hook) otherPrompt() int {
	elsewhere := false
	h.withView(func(view *inbox.View) { d := view.InFlight(); elsewhere = d != nil && h.isOtherTurn(d) })
	if !elsewhere {
		return cli.ExitOK
	}
	return h.record(func(tx *inbox.Tx) error { h.leaveTurn(tx); return nil })
}

// noteQuestion records that the session waits for a person: for a permission, an answer, or what a tool's server asks
// (elicitation_dialog, elicitation_url_dialog). An operator needs no other notification.
func (h *hook) noteQuestion() int {
	in, kind := h.input, h.input.Notification
	if !strings.HasSuffix(kind, "permission_prompt") && !strings.HasSuffix(kind, "_dialog") && kind != "agent_needs_input" {
		return cli.ExitOK
	}
	return h.record(func(tx *inbox.Tx) error { return tx.In(in.SessionID).Ask(kind, in.Message) })
}

// bindPrompt binds the entry with which a client was started to the prompt that the client made of it. The Stop of that
// prompt brings the answer.
func (h *hook) bindPrompt(tx *inbox.Tx) error {
	f, in := h.flight(tx), h.input
	if f == nil {
		return nil
	}
	another := f.Entry.SessionID != "" && f.Entry.SessionID != in.SessionID
	switch {
	case f.Prompted && !f.IsBound() && f.Start == h.Start && !another && in.Prompt == f.Entry.Text():
		h.notePosition(tx)
		f.Transcript, f.TranscriptSize = in.TranscriptPath, f.StartSize(tx.In(in.SessionID).Known())
		if f.TranscriptSize < 0 && in.PromptID != "" {
			f.TranscriptSize = 0 // the prompt's id distinguishes its lines from older ones
		}
		f.BoundSeq, f.Process = tx.Seq(), inbox.ProcessOf(h.clientPID())
		return tx.Bind(inbox.Recipient{SessionID: in.SessionID, PromptID: in.PromptID, Evidence: f.Encode()})
	case claude.IsTaskReport(in.Prompt):
		return h.bindTaskReport(tx)
	}
	return nil
}

const defaultBackground = 30 * time.Minute // how long an entry waits for the tasks that its turn left running

// waitsForTasks reports whether entries wait for the tasks that their turns leave running.
func (h *hook) waitsForTasks() bool {
	return h.input != nil && !h.Rewake && h.Mode == ModeDrain && h.Background != 0
}

// addTaskReports adds to the tasks of a Stop those whose report the client still keeps. A client that died with a report
// in its queue never sent it to the model.
func (h *hook) addTaskReports() {
	in := h.input
	if !h.waitsForTasks() || in.Event != claude.EventStop {
		return
	}
	kept, _ := in.Reports(0)
	if len(kept) == 0 {
		return
	}
	start := int64(0)
	h.withView(func(view *inbox.View) {
		if path, size, _ := agent.StartOf(view.In(in.SessionID).Known().StartNote); path == in.TranscriptPath {
			start = size
		}
	})
	current := false
	for end := time.Now().Add(transcriptWait); ; time.Sleep(transcriptWait / 30) {
		if kept, current = in.Reports(start); current || len(kept) == 0 || time.Now().After(end) {
			break
		}
	}
	if current {
		in.Tasks = append(in.Tasks, kept...)
	}
}

// tasksLeft returns the tasks that the turn of the entry in flight left running in the background, and for which the entry
// waits. The turn may end, but the session continues, and the client prompts it when a task ends.
func (h *hook) tasksLeft(f *recovery.Flight) []claude.Task {
	if !h.waitsForTasks() || f.Entry.Verdict != nil {
		return nil // the agent's verdict needs no waiting
	}
	return f.TasksLeft()
}

// bindTaskReport binds the entry in flight to the turn in which the session learns how one of the entry's tasks ended.
func (h *hook) bindTaskReport(tx *inbox.Tx) error {
	f := h.flight(tx)
	if f == nil || f.Entry.SessionID != h.input.SessionID || !f.ReportsOn(h.input.Prompt) {
		return nil
	}
	return tx.Bind(inbox.Recipient{SessionID: h.input.SessionID, PromptID: h.input.PromptID, Evidence: f.Entry.Evidence})
}

// endSession notes the end of a session. An entry that waits for tasks counts as answered, because the tasks end too.
func (h *hook) endSession(tx *inbox.Tx) error {
	h.notePosition(tx)
	h.warnUncounted(meter.ChargeTurn(tx, h.input.SessionID))
	f, of := h.flight(tx), tx.In(h.input.SessionID)
	var err error
	switch lastFailed := h.client().LastFailed; {
	case f != nil && f.Entry.SessionID == h.input.SessionID && f.Elsewhere() == nil:
		if f.Held {
			_, err = h.settle(tx, recovery.Sight{Ended: true, Charged: true})
		} else if at, name, message, failed := f.Failed(); failed {
			err = of.FailAt(at, name, message)
		}
	case lastFailed != nil:
		if name, message, failed := lastFailed(h.input.TranscriptPath); failed {
			if err = of.FailAlone(name, message); err == nil {
				err = recovery.HoldDelivery(tx, &inbox.Failure{Error: name, Message: message, At: time.Now().UTC()}, false)
			}
		}
	}
	if err != nil {
		return err
	}
	s := of.Known()
	if pid := h.clientPID(); pid != 0 && pid != s.PID && s.Life() == machine.Alive {
		return nil // it is open in two clients, and continues in the other one
	}
	return of.End()
}
