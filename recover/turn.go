package recover

import (
	"encoding/json"
	"slices"

	"heartbeat/inbox"
	"heartbeat/internal/agent/handed"
	"heartbeat/internal/claude"
	"heartbeat/internal/machine"
)

// StopMeaning is what a Stop says about the entry in flight.
type StopMeaning int

// What a Stop says.
const (
	TurnEnded  StopMeaning = iota + 1 // it ends the entry's turn
	SameStop                          // it is the Stop that delivered the entry
	Unproven                          // it may be that Stop, and no transcript shows that it is another
	WentOn                            // the entry's session goes on with another prompt
	LeftBehind                        // the entry's session is gone, or was resumed
	Pending                           // the entry's session has not picked it up, or works on it
	Unsure                            // the transcript, written late, may show it soon
)

// StopMeans returns what the asker's Stop says about the entry. It changes nothing. patient says that there is still time to
// wait for a transcript; waitFor is the one that may soon show more to a Stop that is [Unsure].
//
// Without a client's input the flag file alone counts, as in heartbeat-rs: it is there once the entry was answered.
func (f *Flight) StopMeans(patient bool) (says StopMeaning, waitFor string) {
	in := f.by.Stop
	switch {
	case in == nil && f.responded:
		return TurnEnded, ""
	case in == nil:
		return LeftBehind, ""
	case f.Woken:
		return f.meansForWoken(), ""
	case f.Prompted:
		if says, waitFor = f.meansForPrompt(patient); says != 0 {
			return says, waitFor
		}
	case f.inSession() && f.inPrompt():
		if says, waitFor = f.meansIfDelivering(patient); says != 0 {
			return says, waitFor
		}
		if f.Entry.PromptID != "" || in.StopHookActive {
			return f.meansIfLater(patient)
		}
	}
	if f.Held && f.inSession() && f.restarted() == notRestarted && f.isClient() {
		// A person's turn has ended. Tasks that the client no longer lists ended during it.
		if len(f.TasksLeft()) > 0 {
			return Pending, ""
		}
		return TurnEnded, ""
	}
	return f.leftBehind(), ""
}

// meansIfDelivering recognises a second hook of the Stop that delivered the entry. A process that started before the
// delivery cannot bring the answer; one with different input does. If the input is the same, as when the model repeats
// itself, the transcript decides; if it cannot, nothing counts as an answer. 0 means that this is a later Stop.
func (f *Flight) meansIfDelivering(patient bool) (says StopMeaning, waitFor string) {
	in := f.by.Stop
	switch {
	case f.TranscriptSize < 0:
		return 0, ""
	case f.startedBefore():
		return SameStop, ""
	case !f.sameInput():
		return 0, ""
	case in.Background || in.TranscriptPath == "":
		return SameStop, "" // in the background, an answer that shows may be to a later Stop
	}
	seen := f.byBlock(in.TranscriptPath).Seen()
	switch {
	case seen.Answered() || seen.NextTurn() != handed.Unknown:
		return 0, ""
	case patient: // a session's first turns may end before its transcript exists
		return Unsure, in.TranscriptPath
	}
	return Unproven, ""
}

// meansIfLater judges a later Stop of the turn that the entry was delivered in. Another hook may have made that turn go
// on, so without a note that the text went out, the transcript has to show that the model had it.
func (f *Flight) meansIfLater(patient bool) (says StopMeaning, waitFor string) {
	if f.handed || !f.Notes { // the hook notes when the text goes out
		return TurnEnded, ""
	}
	switch f.byBlock(f.Transcript).Seen().NextTurn() {
	case handed.WithText:
		return TurnEnded, ""
	case handed.WithoutText:
		return LeftBehind, "" // settled as never arrived: it goes back to the queue
	}
	if f.Transcript != "" && patient {
		return Unsure, f.Transcript
	}
	return LeftBehind, ""
}

// meansForWoken judges an entry that was to wake its session. The client announces the text in a prompt; the turn of that
// prompt is the entry's. Until then the client queues it behind what a person has typed.
func (f *Flight) meansForWoken() StopMeaning {
	in := f.by.Stop
	switch {
	case f.Bound && f.inSession() && f.inPrompt():
		return TurnEnded
	case f.Bound && f.inSession() && f.Before != "" && in.PromptID == f.Before:
		return Pending // this hook was slow to start
	case !f.Bound && f.inSession() && in.PromptID != "" && f.Woke(in.PromptID):
		return TurnEnded // the hook missed the announcement
	case !f.Bound && f.SameClient():
		return Pending
	}
	return f.leftBehind()
}

// meansForPrompt judges an entry that a client was started with. Its turn is that of the prompt to which the client's
// hook bound it; if that hook was killed, the transcript tells. 0 means that this Stop ends another turn.
func (f *Flight) meansForPrompt(patient bool) (says StopMeaning, waitFor string) {
	in, ours := f.by.Stop, f.by.Start == f.Start
	switch {
	case !ours && f.by.Start != "" || ours && f.startedBefore(): // a Stop of an earlier client
		return Pending, ""
	case f.IsBound() && f.inSession() && f.inPrompt(),
		!f.IsBound() && ours && in.PromptID != "" && f.prompt(in.TranscriptPath, 0).Asked(in.PromptID):
		return TurnEnded, ""
	case !f.IsBound() && ours && patient && claude.TranscriptSize(in.TranscriptPath) > 0:
		return Unsure, in.TranscriptPath
	}
	return 0, ""
}

// leftBehind tells a turn that a person ended from a session that is gone. If that session lives elsewhere, settling
// finds that the entry has an owner.
func (f *Flight) leftBehind() StopMeaning {
	if f.inSession() && f.restarted() != restarted {
		return WentOn
	}
	return LeftBehind
}

func (f *Flight) inPrompt() bool { return f.by.Stop.PromptID == f.Entry.PromptID }

// startedBefore reports whether the asking hook started before the delivery.
func (f *Flight) startedBefore() bool {
	return f.Boot != "" && f.Boot == machine.BootID() && f.by.Stop.Began <= f.SinceBoot
}

// sameInput reports whether this Stop says what the one said that delivered.
func (f *Flight) sameInput() bool {
	return f.by.Stop.StopHookActive == f.Active && f.repeats()
}

func (f *Flight) repeats() bool { return claude.ReplySum(f.by.Stop.LastMessage) == f.Reply }

// EndsLate reports whether the asker's Stop surely ends the turn of a delivery whose entry was set aside: see
// [inbox.InSession.Late].
func (a Asker) EndsLate(d *inbox.Delivery, wentOut bool) bool {
	if d == nil {
		return false
	}
	f := &Flight{Evidence: EvidenceOf(d), Entry: d, by: a}
	switch {
	case f.startedBefore() || !f.SameClient():
		return false
	case f.Woken:
		return f.Bound
	case f.Prompted:
		return f.IsBound()
	}
	return (wentOut || !f.Notes) && (f.TranscriptSize < 0 || !f.sameInput())
}

// TasksLeft returns the tasks that the entry's turn left running, and for which the entry waits.
func (f *Flight) TasksLeft() []claude.Task {
	if f.Over(f.by.Stop.TaskLimit) {
		return nil
	}
	return f.Running(f.by.Stop.Tasks)
}

// LastReply returns what the entry's last turn said. The turn that ends may be a person's instead.
func (f *Flight) LastReply() string {
	in := f.by.Stop
	switch {
	case in == nil:
		return ""
	case f.Held && (in.Event == claude.EventSessionEnd || !f.inPrompt()):
		return f.HeldReply
	case f.repeats() && f.byBlock(f.Transcript).Seen().Silent():
		return ""
	}
	return in.LastMessage
}

// resultTasks returns the entry's tasks as its result keeps them, or nil. The end of the session cuts all of them off.
func (f *Flight) resultTasks() json.RawMessage {
	in, tasks := f.by.Stop, f.tasks()
	if in == nil || !f.Held || len(tasks) == 0 {
		return nil
	}
	for i := range tasks {
		tasks[i].CutOff = in.Event == claude.EventSessionEnd || slices.ContainsFunc(in.Tasks, func(t claude.Task) bool { return t.ID == tasks[i].ID })
	}
	raw, _ := json.Marshal(tasks) // they were JSON before
	return raw
}
