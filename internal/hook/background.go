package hook

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"heartbeat/inbox"
	"heartbeat/internal/charging"
	"heartbeat/internal/claude"
	recovery "heartbeat/recover"
)

// defaultBackground is how long an entry is held for what its turn left running.
const defaultBackground = 30 * time.Minute

// holdForTasks reports whether the entry in flight waits for tasks that its turn left
// running in the background. The turn may end then; the session continues, and the
// client sends it a prompt when a task ends.
func (h *hook) holdForTasks(tx *inbox.Tx, d *inbox.Delivery) (bool, error) {
	if h.input == nil || h.Rewake || h.Mode != ModeDrain || h.Background == 0 || d.Verdict != nil {
		return false, nil // what its agent has said needs no waiting
	}
	e := h.evidenceOf(d)
	running := e.Running(h.input.Tasks)
	if len(running) == 0 || e.Over(time.Duration(h.Background)) {
		return false, nil
	}
	e.TaskWait = e.Wait(running, h.replyTo(d, e))
	return true, tx.Bind(inbox.Recipient{SessionID: d.SessionID, PromptID: d.PromptID, Evidence: e.Encode()})
}

// replyTo is what the last turn of the entry said. The turn that ends may be a
// person's.
func (h *hook) replyTo(d *inbox.Delivery, e recovery.Evidence) string {
	switch {
	case h.input == nil:
		return ""
	case e.Held && h.input.PromptID != d.PromptID:
		return e.HeldReply
	}
	return h.input.LastMessage
}

// toldOfTask binds the entry in flight to the turn in which the session learns how one
// of the entry's tasks ended.
func (h *hook) toldOfTask(tx *inbox.Tx) error {
	d := tx.InFlight()
	if d == nil || d.SessionID != h.input.SessionID || !h.evidenceOf(d).TellsOf(h.input.Prompt) {
		return nil
	}
	return tx.Bind(inbox.Recipient{SessionID: d.SessionID, PromptID: h.input.PromptID, Evidence: d.Evidence})
}

// endSession notes the end of a session. An entry that waited for its tasks counts as
// answered: the tasks end with the session.
func (h *hook) endSession(tx *inbox.Tx) error {
	h.placeTurn(tx, false)
	h.uncounted(charging.End(tx, h.box, h.input.SessionID, h.input.TranscriptPath))
	if d := tx.InFlight(); d != nil && d.SessionID == h.input.SessionID && !h.isElsewhere(tx) {
		e := h.evidenceOf(d)
		if e.Held {
			sight := recovery.Sight{Ended: true, Reply: e.HeldReply, Tasks: h.tasksOf(e), Charged: true}
			if _, err := h.settle(tx, sight); err != nil {
				return err
			}
		} else if name, message, failed := e.ByBlock(d).Seen().Failed(); failed {
			if err := tx.Fail(d.SessionID, name, message); err != nil {
				return err
			}
		}
	}
	return tx.EndSession(h.input.SessionID)
}

// tasksOf returns the tasks of an entry as its result keeps them, or nil. The end of the
// session cuts all of them off.
func (h *hook) tasksOf(e recovery.Evidence) json.RawMessage {
	var tasks []inbox.Task
	if h.input != nil && e.Held && json.Unmarshal([]byte(e.Tasks), &tasks) != nil || len(tasks) == 0 {
		return nil
	}
	for i := range tasks {
		tasks[i].CutOff = h.input.Event == claude.EventSessionEnd || slices.ContainsFunc(h.input.Tasks, func(t claude.Task) bool { return t.ID == tasks[i].ID })
	}
	raw, err := json.Marshal(tasks)
	if err != nil {
		return nil
	}
	return raw
}

// idsOf are the ids of tasks, as evidence keeps them.
func idsOf(tasks []claude.Task) string {
	var ids []string
	for _, t := range tasks {
		ids = append(ids, t.ID)
	}
	return strings.Join(ids, " ")
}
