package hook

import (
	"heartbeat/internal/agent/handed"
	recovery "heartbeat/recover"
)

// verdict is what a Stop says about the entry in flight.
type verdict int

const (
	answered    verdict = iota + 1 // this Stop ends the turn that the entry was
	sameStop                       // this Stop is the one that delivered the entry
	interrupted                    // its session goes on, with another prompt
	orphaned                       // its session is gone, or was resumed
	pending                        // it was handed to a session that has not taken it up, or is at it
	unsure                         // the transcript, which is written late, may tell soon
)

// facts are what a verdict rests on. Those that take a look at a transcript or another
// process are functions, called only where they count.
type facts struct {
	// told says that a client told of this Stop. Without one there is only
	// heartbeat-rs's rule: the flag file says answered.
	told, responded bool

	// What this Stop is: of the session and the prompt that the entry was delivered to,
	// from a process that was there before the delivery, with the input that the
	// delivering Stop had.
	sameSession, samePrompt    bool
	startedBefore              bool
	sameInput                  func() bool
	continued                  bool // stop_hook_active
	background                 bool // the hook runs in the background
	transcript                 string
	transcriptIsThere          func() bool
	showsAnswer                func() bool // behind the length that the delivery noted
	sameClient, deliveryClient func() bool // by its process, or else by its session; by its process alone

	// What is kept with the delivery.
	compares           bool // it was kept what to compare this Stop with
	namesPrompt        bool // the client was one that names prompts
	notes, handedOver  bool // its hook leaves a note once the text went out, and has
	woken, bound, held bool
	turnBefore         bool // this Stop ends the turn before the one that the entry became
	prompted           bool // it is the prompt with which a client was started
	ours, others       bool // by the start that this hook is of; by another one
	deliveryTranscript string
	turnAfter          func() handed.Turn // what the transcript shows behind the delivery
	tookUp             func() bool        // the client took the text up in this turn
	restarted          func() recovery.Restart
	tasksRun           func() bool // what a held entry waits for is not over
	// patient says that the transcript may still be given time.
	patient bool
}

// ruling is a verdict with what there is to do or say about it.
type ruling struct {
	verdict
	// waitFor is the transcript that may tell soon, where the verdict is unsure.
	waitFor string
	// unproven says that this may be another Stop than the one that delivered.
	unproven bool
}

// verdictOf says what a Stop tells of the entry in flight. It changes nothing.
func verdictOf(f facts) ruling {
	switch {
	case !f.told && f.responded:
		return ruling{verdict: answered}
	case !f.told:
		return ruling{verdict: orphaned}
	case f.woken:
		return ruling{verdict: verdictOnWoken(f)}
	case f.prompted:
		if r := verdictOnPrompt(f); r.verdict != 0 {
			return r
		}
	case f.sameSession && f.samePrompt:
		if r, is := deliveringStop(f); is {
			return r
		}
		if f.namesPrompt || f.continued {
			return verdictOnLaterStop(f)
		}
	}
	if f.held && f.sameSession && f.restarted() == recovery.NotRestarted && f.deliveryClient() {
		// Another turn ended, a person's. Tasks that the client no longer lists ended
		// during it.
		if f.tasksRun() {
			return ruling{verdict: pending}
		}
		return ruling{verdict: answered}
	}
	return ruling{verdict: leftBehind(f)}
}

// deliveringStop recognises a second hook of the Stop that delivered the entry. A
// process that started before the delivery cannot bring its answer. One whose input is
// another brings it. Where the input is the very same, as it is when the model says the
// same thing twice, the transcript tells; where it cannot, nothing is taken for an
// answer.
func deliveringStop(f facts) (r ruling, is bool) {
	switch {
	case !f.compares:
		return r, false
	case f.startedBefore:
		return ruling{verdict: sameStop}, true
	case !f.sameInput():
		return r, false
	case f.background || f.transcript == "":
		return ruling{verdict: sameStop}, true // in the background an answer that shows may be to a later Stop
	case f.showsAnswer():
		return r, false
	case f.patient: // a session's first turns may end before its transcript is there
		return ruling{verdict: unsure, waitFor: f.transcript}, true
	}
	return ruling{verdict: sameStop, unproven: true}, true
}

// verdictOnLaterStop is about a later Stop of the turn that the entry was delivered in.
// Another hook may have made that turn go on. So where it was not noted that the text
// went out, the transcript has to show that the model had it.
func verdictOnLaterStop(f facts) ruling {
	if f.handedOver || !f.notes {
		return ruling{verdict: answered}
	}
	switch f.turnAfter() {
	case handed.WithText:
		return ruling{verdict: answered}
	case handed.WithoutText:
		return ruling{verdict: orphaned} // which goes back to the queue, since the text never arrived
	}
	if f.deliveryTranscript != "" && f.patient {
		return ruling{verdict: unsure, waitFor: f.deliveryTranscript}
	}
	return ruling{verdict: orphaned}
}

// verdictOnWoken is about an entry that was to wake its session. The turn that it became
// has the prompt with which the client announced it. Until then the client keeps it
// behind what a person has typed.
func verdictOnWoken(f facts) verdict {
	switch {
	case f.bound && f.sameSession && f.samePrompt:
		return answered
	case f.bound && f.sameSession && f.turnBefore:
		return pending // this hook was slow to start
	case !f.bound && f.sameSession && f.tookUp():
		return answered // the announcement was missed
	case !f.bound && f.sameClient():
		return pending
	}
	return leftBehind(f)
}

// verdictOnPrompt is about an entry that a client was started with. The turn that it
// became has the prompt to which that client's hook has bound it; where that hook was
// killed, the transcript tells. No verdict means that this Stop ends another turn.
func verdictOnPrompt(f facts) ruling {
	switch {
	case f.others || f.ours && f.startedBefore: // a Stop of the client before
		return ruling{verdict: pending}
	case f.bound && f.sameSession && f.samePrompt:
		return ruling{verdict: answered}
	case !f.bound && f.ours && f.tookUp():
		return ruling{verdict: answered}
	case !f.bound && f.ours && f.patient && f.transcriptIsThere():
		return ruling{verdict: unsure, waitFor: f.transcript}
	}
	return ruling{}
}

// leftBehind tells a turn that a person ended from a session that is gone. Where that
// session lives and is another, whoever settles the entry finds that it has an owner.
func leftBehind(f facts) verdict {
	if f.sameSession && f.restarted() != recovery.Restarted {
		return interrupted
	}
	return orphaned
}
