package recover

import (
	"encoding/json"
	"slices"

	"heartbeat/inbox"
	"heartbeat/internal/agent/handed"
	"heartbeat/internal/claude"
	"heartbeat/internal/machine"
)

// StopMeaning is what a Stop means for the entry in flight.
type StopMeaning int

// The meanings.
const (
	TurnEnded  StopMeaning = iota + 1 // it ends the entry's turn
	SameStop                          // it is the Stop that delivered the entry
	Unproven                          // it may be that Stop, and no transcript shows that it is another
	WentOn                            // the entry's session works on another prompt
	LeftBehind                        // the entry's session is gone, or was resumed
	Pending                           // the entry's session has yet to pick it up, or works on it
	Unsure                            // the transcript, written late, may show it soon
)

// StopMeans returns what the asker's Stop means for the entry. It changes nothing. patient says that there is still time
// to wait for a transcript. If the Stop is [Unsure], waitFor is the transcript that may soon show more.
//
// Without a client's input the flag file alone decides, as in heartbeat-rs: it is there once the entry was answered.
func (f *Flight) StopMeans(patient bool) (means StopMeaning, waitFor string) {
	in := f.by.Stop
	switch {
	case in == nil && f.responded:
		return TurnEnded, ""
	case in == nil:
		return LeftBehind, ""
	case f.Woken:
		return f.meansForWoken(), ""
	case f.Prompted:
		if means, waitFor = f.meansForPrompt(patient); means != 0 {
			return means, waitFor
		}
	case f.inSession() && f.inPrompt():
		if means, waitFor = f.meansIfDelivering(patient); means != 0 {
			return means, waitFor
		}
		if f.Entry.PromptID != "" || in.StopHookActive {
			return f.meansIfLater(patient)
		}
	}
	if f.Held && f.inSession() && f.restarted() == notRestarted && f.isClient() {
		// A person's turn has ended. The tasks that the client no longer lists ended during it.
		if len(f.TasksLeft()) > 0 {
			return Pending, ""
		}
		return TurnEnded, ""
	}
	return f.leftBehind(), ""
}

// meansIfDelivering recognises a second hook of the Stop that delivered the entry. A hook that started before the
// delivery cannot bring the answer; one with other input does. If the input is the same, as when the model repeats
// itself, the transcript decides. If it cannot, nothing counts as an answer. 0 means that this is a later Stop.
func (f *Flight) meansIfDelivering(patient bool) (means StopMeaning, waitFor string) {
	in := f.by.Stop
	switch {
	case f.TranscriptSize < 0:
		return 0, ""
	case f.startedBefore():
		return SameStop, ""
	case !f.sameInput():
		return 0, ""
	case in.Background || in.TranscriptPath == "":
		return SameStop, "" // for a hook in the background, a visible answer may belong to a later Stop
	}
	seen := f.byBlock(in.TranscriptPath).Seen()
	switch {
	case seen.Answered() || seen.NextTurn() != handed.Unknown:
		return 0, ""
	case patient: // a session's first turns may end before the transcript exists
		return Unsure, in.TranscriptPath
	}
	return Unproven, ""
}

// meansIfLater judges a later Stop of the turn in which the entry was delivered. Another hook may have continued that
// turn. So if no hook noted that the text went out, the transcript has to show that the model had it.
func (f *Flight) meansIfLater(patient bool) (means StopMeaning, waitFor string) {
	if f.handed || !f.Notes { // hooks of earlier releases note nothing
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

// meansForWoken judges an entry that was to wake its session. The client queues the text behind what a person has typed,
// and then announces it in a prompt. The turn of that prompt is the entry's.
func (f *Flight) meansForWoken() StopMeaning {
	switch prompt := f.by.Stop.PromptID; {
	case f.Bound && f.inSession() && f.inPrompt(),
		!f.Bound && f.inSession() && prompt != "" && f.Woke(prompt): // the hook missed the announcement
		return TurnEnded
	case f.Bound && f.inSession() && f.Before != "" && prompt == f.Before:
		return Pending // this hook was slow to start
	case !f.Bound && f.SameClient():
		if _, finished := f.finished(); !finished { // else no hook saw its turn, as when the session got another wiring
			return Pending
		}
	}
	return f.leftBehind()
}

// meansForPrompt judges an entry with which a client was started. Its turn is that of the prompt to which the client's
// hook bound it. If that hook was killed or had no room, the transcript decides. 0 means that this Stop ends another turn.
func (f *Flight) meansForPrompt(patient bool) (means StopMeaning, waitFor string) {
	in, ours := f.by.Stop, f.by.Start == f.Start
	switch {
	case !ours && f.by.Start != "" || ours && f.startedBefore(): // a Stop of an earlier client
		return Pending, ""
	case f.IsBound() && f.inSession() && f.inPrompt(),
		!f.IsBound() && ours && in.PromptID != "" && f.prompt(in.TranscriptPath, 0).Asked(in.PromptID):
		return TurnEnded, ""
	case !f.IsBound() && ours && patient && claude.TranscriptSize(in.TranscriptPath) > 0:
		return Unsure, in.TranscriptPath
	case !f.IsBound() && ours && f.Start != "":
		return Pending, "" // it may end that very turn: at the client's end its host has its output, too
	}
	return 0, ""
}

// leftBehind distinguishes a turn that a person ended from a session that is gone. If that session lives elsewhere,
// [Settle] leaves the entry to it.
func (f *Flight) leftBehind() StopMeaning {
	if f.inSession() && f.restarted() != restarted {
		return WentOn
	}
	return LeftBehind
}

func (f *Flight) inPrompt() bool { return f.by.Stop.PromptID == f.Entry.PromptID }

func (f *Flight) startedBefore() bool {
	return f.Boot != "" && f.Boot == machine.BootID() && f.by.Stop.Began <= f.SinceBoot
}

// sameInput reports whether this Stop has the input of the Stop that delivered the entry.
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

// TasksLeft returns the tasks that the entry's turn left running and for which the entry waits.
func (f *Flight) TasksLeft() []claude.Task {
	if f.Over(f.by.Stop.TaskLimit) {
		return nil
	}
	return f.Running(f.by.Stop.Tasks)
}

// LastReply returns the reply of the entry's last turn, which may have ended before the turn of this Stop.
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
	raw, _ := json.Marshal(tasks) // what was JSON encodes again
	return raw
}
