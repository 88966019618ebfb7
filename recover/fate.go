// Package recover decides who owns the entry in flight and what becomes of it. Hooks, launcher, session host, the verb
// recover and the agent of a fleet all ask it.
//
// Import it under another name, so that the builtin stays usable:
//
//	import recovery "heartbeat/recover"
//
// [Settle] decides about the entry in flight by one table; its first row protects an owner that lives (see [OwnerOf]).
// [Held] says what keeps delivery back, and [Next] which entry comes. [Run] is Settle in a transaction of its own.
// [Waiting] combines Held and Next for those who start sessions.
//
// The hook keeps [Evidence] with each delivery. From it a [Flight] works out later whether the model ever got the text,
// and what a Stop means for the entry ([Flight.StopMeans]).
//
// A decision is one commit of the inbox. Settling twice therefore equals settling once, and so does a kill at any
// point followed by another try.
package recover

import (
	"encoding/json"
	"fmt"
	"slices"

	"heartbeat/inbox"
	"heartbeat/internal/check"
	"heartbeat/internal/claude"
	"heartbeat/internal/words"
)

// Sight is what the asker saw of the entry's turn, besides what the inbox and the transcript show. The zero value
// says that nobody saw the turn end.
type Sight struct {
	Ended bool // the asker's own Stop ended the turn
	// Check is the outcome of the check that ran after that Stop, nil if none ran. Spent says that this delivery is over
	// even so: the check may not fail again, or the session takes nothing more.
	Check *check.Outcome
	Spent bool
	// Missing is why the answer does not settle the entry (an effect of a run without its result), "" if it does.
	Missing       string
	NotHandedOver bool  // the text did not go out, so nobody got it
	Over          *Over // the limit that the entry, its session or the day has reached, or nil
	Output
	// Overcome says that a session has continued since the turn ended in an error. The policy then decides.
	Overcome bool
	// Reason is why the entry was not answered, for its dead letter. "" means failed if a failure was recorded, else
	// orphaned.
	Reason  inbox.Reason
	Charged bool // the spending of the entry's session is already booked
}

// Output is what the client printed whose prompt the entry was. Its hooks report apart from it.
type Output struct {
	Known   bool // it was read to the end
	Began   bool // the client came further than its start
	Asked   bool // the model answered
	Printed bool // the output shows the turn's end, with this reply, although no hook reported it
	Reply   string
	Command bool // the client took the text for one of its own commands
}

// situation is everything that a fate depends on. Its functions read the transcript, and only rows that need it call them.
type situation struct {
	Sight
	d         *inbox.Delivery
	owner     *Owner         // the live owner if it is not the asker, else nil
	failure   *inbox.Failure // the error that ended the turn and is not over
	policy    Policy
	used      bool            // its attempts are used up
	tasks     json.RawMessage // what its turn left running, as in a result
	proof     func() (reply string, finished bool)
	unreached func() bool
}

// fate is a row of the table.
type fate struct {
	when  string // the wording of docs/design.md
	holds func(*situation) bool
	writes
}

// fates is the one rule for what becomes of an entry in flight: the first row that holds decides. The agent's verdict
// counts more than how the turn ended, because it was committed first.
var fates = []fate{
	{"its owner lives, and another asks, but for a person with `recover --force`", func(s *situation) bool { return s.owner != nil }, leftAlone},
	{"its text did not go out", func(s *situation) bool { return s.NotHandedOver }, givenBack},
	{"its agent said that it is done, and it has passed its check or has none", (*situation).agentDone, answered},
	{"its check has failed as often as it may, or failed in the last of its attempts where its session takes nothing more", func(s *situation) bool { return s.checkIs(check.Failed) && (s.Spent || s.used) }, failsCheck},
	{"its check failed, and its session takes nothing more", func(s *situation) bool { return s.checkIs(check.Failed) }, again(checkOf)},
	{"its check could not be run for too long; its attempts are used up", func(s *situation) bool { return s.checkIs(check.Unable) && s.used }, uncheckable},
	{"its check could not be run for too long", func(s *situation) bool { return s.checkIs(check.Unable) }, again(checkOf)},
	{"its agent said that it can never be done", verdictIs(inbox.VerdictRejected), rejected},
	{"it has reached its own limit, or alone that of a day, and is not proven to be answered", func(s *situation) bool { return s.over() && s.Over.Alone }, overLimit},
	{"the day has reached its limit; its attempts are used up", func(s *situation) bool { return s.over() && s.used }, overLimit},
	{"the day has reached its limit", (*situation).over, again(func(s *situation) string { return s.Over.Figures })},
	{"its agent said that it failed; its attempts are used up", func(s *situation) bool { return s.agentFailed() && s.used }, gaveUp},
	{"its agent said that it failed", (*situation).agentFailed, putOff},
	{"its turn ended without the result of its run's effect; its attempts are used up", func(s *situation) bool { return s.Missing != "" && s.used }, setAside(inbox.ReasonUnresolved)},
	{"its turn ended without the result of its run's effect", func(s *situation) bool { return s.Missing != "" }, again(func(s *situation) string { return s.Missing })},
	{"the Stop of its turn, and it has passed its check or has none", func(s *situation) bool { return s.Ended && s.checked() }, answered},
	{"its turn ended in an error of the API that may be its own fault; its attempts are used up", func(s *situation) bool { return s.failure != nil && s.mayBeItsFault() && s.used }, setAside(inbox.ReasonExhausted)},
	{"its turn ended in an error of the API that may be its own fault", func(s *situation) bool { return s.failure != nil && s.mayBeItsFault() }, again(failureOf)},
	{"its turn ended in another error of the API", func(s *situation) bool { return s.failure != nil }, againUncounted(failureOf)},
	{"the client took its text for a command of its own", func(s *situation) bool { return s.Command }, setAside(inbox.ReasonCommand)},
	{"the transcript proves that its turn ended, and it has no check", func(s *situation) bool { return s.finished() && s.checked() }, answered},
	{"no hook of its client told of the end, and the client's own result line says that its turn ended, and it has no check", func(s *situation) bool { return s.Printed && s.checked() }, answered},
	{"it is proven that its text never reached the model", func(s *situation) bool { return s.unreached() }, givenBack},
	{"policy `drop`", func(s *situation) bool { return s.policy == Drop }, dropped},
	{"policy `retry`; its session was ended with its launcher, by somebody's order", func(s *situation) bool { return s.policy == Retry && s.Reason == inbox.ReasonStopped }, againUncounted(stopped)},
	{"policy `retry`; its attempts are used up", func(s *situation) bool { return s.policy == Retry && s.used }, writes{
		what: "a dead letter `attempts exhausted`, with why, if known", action: DeadLettered, reason: inbox.ReasonExhausted,
		failure: func(s *situation) (name, message string) { return string(s.Reason), "" }}},
	{"policy `retry`", func(s *situation) bool { return s.policy == Retry }, again(nothing)},
	{"policy `deadletter`; an error of the API ended its turn, and a session went on since", func(s *situation) bool { return s.d.Failure != nil }, setAside(inbox.ReasonFailed)},
	{"policy `deadletter`; the asker knows why: a person interrupted it, it was canceled, nobody answered its question, its session was ended by somebody's order", func(s *situation) bool { return s.Reason != "" }, writes{what: "a dead letter with that reason", action: DeadLettered}},
	{"policy `deadletter`; its turn ended, and its check did not run to an end", func(s *situation) bool { return s.ended() && !s.checked() }, setAside(inbox.ReasonUnchecked)},
	{"policy `deadletter`", func(*situation) bool { return true }, setAside(inbox.ReasonOrphaned)},
}

// decide returns the first row that holds. The last row always does.
func decide(s *situation) fate {
	return fates[slices.IndexFunc(fates, func(f fate) bool { return f.holds(s) })]
}

func verdictIs(kind inbox.VerdictKind) func(*situation) bool {
	return func(s *situation) bool { return s.d.Verdict != nil && s.d.Verdict.Kind == kind }
}

func (s *situation) agentFailed() bool { return verdictIs(inbox.VerdictFailed)(s) }

func (s *situation) agentDone() bool { return verdictIs(inbox.VerdictDone)(s) && s.checked() }

func (s *situation) over() bool { return s.Over != nil && !(s.finished() && s.checked()) }

func (s *situation) checkIs(v check.Verdict) bool { return s.Check != nil && s.Check.Verdict == v }

// checked reports whether nothing is left to check. A passed check counts only for the turn that it ran after.
func (s *situation) checked() bool { return s.d.Check == nil || s.Ended && s.checkIs(check.Passed) }

// ended reports whether the turn came to its end, whether or not its work passes the check.
func (s *situation) ended() bool {
	if c := s.d.Check; c != nil && (c.Status == inbox.CheckRuns || c.Status == inbox.CheckUnable) {
		return true
	}
	return s.Ended || s.Printed || verdictIs(inbox.VerdictDone)(s) || s.finished()
}

func checkOf(s *situation) string { return "its " + s.Check.String() }

func (s *situation) mayBeItsFault() bool {
	return claude.RemedyFor(s.failure.Error, s.failure.Message).Counts
}

func failureOf(s *situation) string { return s.failure.String() }

func nothing(*situation) string { return "" }

func stopped(*situation) string { return "its session was ended with its launcher" }

func (s *situation) finished() bool {
	_, finished := s.proof()
	return finished
}

// writes is what a fate writes, in one commit with whatever is delivered next.
type writes struct {
	what   string // the wording of docs/design.md
	action Action
	reason inbox.Reason // of the dead letter; "" for the reason of the sight
	// failure returns the error for the dead letter. If it returns no name, the recorded failure stays.
	failure func(*situation) (name, message string)
	// why is the reason of a `redeliver`. counts says that the attempt counts. waits says that the entry is scheduled if
	// its agent named a time.
	why           func(*situation) string
	counts, waits bool
}

const (
	printed, withVerdict = ", with what the check printed", ", with what it said"
	failedByAgent        = "failed by its agent"
)

var (
	leftAlone = writes{what: "nothing", action: Owned}
	answered  = writes{what: "a result", action: Answered}
	dropped   = writes{what: "an event", action: Dropped}
	givenBack = writes{what: "`redeliver`; the attempt does not count", action: Returned}
	putOff    = writes{what: "`redeliver`, or a scheduled line if it is to wait; the attempt counts", action: Requeued, why: putOffFor, counts: true, waits: true}

	failsCheck  = setAsideFor(inbox.ReasonCheckFailed, string(inbox.ReasonCheckFailed), printed, checkOf)
	uncheckable = setAsideFor(inbox.ReasonUnchecked, string(inbox.ReasonUnchecked), printed, checkOf)
	rejected    = setAsideFor(inbox.ReasonRejected, "rejected by its agent", withVerdict, itsWords)
	gaveUp      = setAsideFor(inbox.ReasonExhausted, failedByAgent, withVerdict, itsWords)
	overLimit   = setAsideFor(inbox.ReasonOverBudget, string(inbox.ReasonOverBudget), "", overFigures)
)

// again delivers the entry once more. The attempt counts.
func again(why func(*situation) string) writes {
	return writes{what: "`redeliver`; the attempt counts", action: Requeued, why: why, counts: true}
}

func againUncounted(why func(*situation) string) writes {
	return writes{what: "`redeliver`; the attempt does not count", action: Requeued, why: why}
}

func setAside(reason inbox.Reason) writes {
	return writes{what: "a dead letter `" + string(reason) + "`", action: DeadLettered, reason: reason}
}

// setAsideFor sets the entry aside with the error failure and the message that why returns, which with describes.
func setAsideFor(reason inbox.Reason, failure, with string, why func(*situation) string) writes {
	w := setAside(reason)
	w.what += with
	w.failure = func(s *situation) (name, message string) { return failure, why(s) }
	return w
}

func itsWords(s *situation) string { return s.d.Verdict.Text }

func putOffFor(s *situation) string {
	return fmt.Sprintf("%s: %s", failedByAgent, words.Brief(s.d.Verdict.Text))
}

func overFigures(s *situation) string {
	if s.Over.Alone {
		return s.Over.Figures
	}
	return fmt.Sprintf("%s, at the last of its attempts (%d)", s.Over.Figures, s.d.Attempt)
}
