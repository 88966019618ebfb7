package hook

import (
	"heartbeat/internal/agent/handed"
	"heartbeat/internal/claude"
	recovery "heartbeat/recover"
)

// verdict is what a Stop says about the entry in flight.
type verdict int

const (
	answered    verdict = iota + 1 // this Stop ends the entry's turn
	sameStop                       // this is the Stop that delivered the entry
	interrupted                    // its session goes on with another prompt
	orphaned                       // its session is gone, or was resumed
	pending                        // its session has not picked it up, or works on it
	unsure                         // the transcript, written late, may show it soon
)

// facts are what a verdict depends on. Facts that read a transcript or look at another process are functions, called
// only when they count.
type facts struct {
	// in is what the client told of this Stop, nil without a client. In that case the flag file alone counts, as in
	// heartbeat-rs: responded says that the entry was answered.
	in        *claude.Input
	responded bool
	e         recovery.Evidence // of the delivery

	sameSession, samePrompt bool   // this Stop's are the delivery's
	namesPrompt             bool   // the delivery's client named prompts
	startedBefore           bool   // this Stop's process started before the delivery
	start                   string // the name of this client's start (--start), "" for none
	handedOver              bool   // there is a note that the text went out
	background              bool   // the hook runs in the background
	patient                 bool   // there is still time to wait for the transcript

	sameInput                  func() bool // as the delivering Stop had
	transcriptIsThere          func() bool
	showsAnswer                func() bool        // beyond the size noted at the delivery
	sameClient, deliveryClient func() bool        // by process, or by session if that is unknown; by process alone
	turnAfter                  func() handed.Turn // what the transcript shows after the delivery
	tookUp                     func() bool        // the client picked the text up in this turn
	restarted                  func() recovery.Restart
	tasksRun                   func() bool // tasks of a held entry still run
}

// ruling is a verdict, with what follows from it.
type ruling struct {
	verdict
	// waitFor is the transcript that may show more soon, if the verdict is unsure.
	waitFor string
	// unproven says that this may be a later Stop than the one that delivered.
	unproven bool
}

// verdictOf says what a Stop tells of the entry in flight. It changes nothing.
func verdictOf(f facts) ruling {
	switch {
	case f.in == nil && f.responded:
		return ruling{verdict: answered}
	case f.in == nil:
		return ruling{verdict: orphaned}
	case f.e.Woken:
		return ruling{verdict: verdictOnWoken(f)}
	case f.e.Prompted:
		if r := verdictOnPrompt(f); r.verdict != 0 {
			return r
		}
	case f.sameSession && f.samePrompt:
		if r, is := deliveringStop(f); is {
			return r
		}
		if f.namesPrompt || f.in.StopHookActive {
			return verdictOnLaterStop(f)
		}
	}
	if f.e.Held && f.sameSession && f.restarted() == recovery.NotRestarted && f.deliveryClient() {
		// A person's turn has ended. Tasks that the client no longer lists ended during it.
		if f.tasksRun() {
			return ruling{verdict: pending}
		}
		return ruling{verdict: answered}
	}
	return ruling{verdict: leftBehind(f)}
}

// deliveringStop recognises a second hook of the Stop that delivered the entry. A process that started before the
// delivery cannot bring the answer; one with different input does. If the input is the same, as when the model repeats
// itself, the transcript decides; if it cannot, nothing counts as an answer.
func deliveringStop(f facts) (r ruling, is bool) {
	switch {
	case f.e.TranscriptSize < 0:
		return r, false
	case f.startedBefore:
		return ruling{verdict: sameStop}, true
	case !f.sameInput():
		return r, false
	case f.background || f.in.TranscriptPath == "":
		return ruling{verdict: sameStop}, true // in the background, an answer that shows may be to a later Stop
	case f.showsAnswer():
		return r, false
	case f.patient: // a session's first turns may end before its transcript exists
		return ruling{verdict: unsure, waitFor: f.in.TranscriptPath}, true
	}
	return ruling{verdict: sameStop, unproven: true}, true
}

// verdictOnLaterStop judges a later Stop of the turn that the entry was delivered in. Another hook may have made that
// turn go on, so without a note that the text went out, the transcript has to show that the model had it.
func verdictOnLaterStop(f facts) ruling {
	if f.handedOver || !f.e.Notes { // the hook notes when the text goes out
		return ruling{verdict: answered}
	}
	switch f.turnAfter() {
	case handed.WithText:
		return ruling{verdict: answered}
	case handed.WithoutText:
		return ruling{verdict: orphaned} // settled as never arrived: it goes back to the queue
	}
	if f.e.Transcript != "" && f.patient {
		return ruling{verdict: unsure, waitFor: f.e.Transcript}
	}
	return ruling{verdict: orphaned}
}

// verdictOnWoken judges an entry that was to wake its session. The client announces the text in a prompt; the turn of
// that prompt is the entry's. Until then the client queues it behind what a person has typed.
func verdictOnWoken(f facts) verdict {
	switch {
	case f.e.Bound && f.sameSession && f.samePrompt:
		return answered
	case f.e.Bound && f.sameSession && f.e.Before != "" && f.in.PromptID == f.e.Before:
		return pending // this hook was slow to start
	case !f.e.Bound && f.sameSession && f.tookUp():
		return answered // the hook missed the announcement
	case !f.e.Bound && f.sameClient():
		return pending
	}
	return leftBehind(f)
}

// verdictOnPrompt judges an entry that a client was started with. Its turn is that of the prompt to which the client's
// hook bound it; if that hook was killed, the transcript tells. No verdict means that this Stop ends another turn.
func verdictOnPrompt(f facts) ruling {
	ours := f.start == f.e.Start
	switch {
	case !ours && f.start != "" || ours && f.startedBefore: // a Stop of an earlier client
		return ruling{verdict: pending}
	case f.e.IsBound() && f.sameSession && f.samePrompt:
		return ruling{verdict: answered}
	case !f.e.IsBound() && ours && f.tookUp():
		return ruling{verdict: answered}
	case !f.e.IsBound() && ours && f.patient && f.transcriptIsThere():
		return ruling{verdict: unsure, waitFor: f.in.TranscriptPath}
	}
	return ruling{}
}

// leftBehind tells a turn that a person ended from a session that is gone. If that session lives elsewhere, settling
// finds that the entry has an owner.
func leftBehind(f facts) verdict {
	if f.sameSession && f.restarted() != recovery.Restarted {
		return interrupted
	}
	return orphaned
}
