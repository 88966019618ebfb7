package recover

import (
	"sync"
	"time"

	"heartbeat/inbox"
	"heartbeat/internal/agent"
	"heartbeat/internal/claude"
	"heartbeat/internal/machine"
)

// Stop is the event whose hook asks what becomes of the entry in flight.
type Stop struct {
	*claude.Input
	Began      int64         // of the hook's process, by [machine.SinceBoot]
	Background bool          // the client does not wait for the hook
	TaskLimit  time.Duration // how long an entry waits for tasks that its turn left running
}

// Flight is an entry in flight as an asker sees it: the delivery, its evidence, what else the inbox knows of it, and the
// asker's own event. Its methods change nothing. They read transcripts and inspect other processes only where a decision
// depends on these, as at few Stops it does.
type Flight struct {
	Evidence
	Entry *inbox.Delivery
	by    Asker
	noted
}

// noted is what the inbox knows of a delivery beside the delivery itself.
type noted struct {
	session   func() inbox.Session // the entry's, decoded at the first call
	handed    bool                 // a hook noted that the text went out
	responded bool                 // the flag file is there
}

// Flight returns the entry that tx has in flight, or nil.
func (a Asker) Flight(tx *inbox.Tx) *Flight {
	d := tx.InFlight()
	if d == nil {
		return nil
	}
	return &Flight{EvidenceOf(d), d, a, noted{sync.OnceValue(tx.In(d.SessionID).Known), tx.IsHandedOver(), tx.Responded()}}
}

// Elsewhere returns the live owner that keeps the asker from settling the entry. It is nil if the asker is the owner, a
// person forces it, or no owner lives.
func (f *Flight) Elsewhere() *Owner {
	a := f.by
	if a.Force || f.PID != 0 && a.Client.PID == f.PID || f.Prompted && f.Start != "" && f.Start == a.Start {
		return nil // if another process has this id by now, the owner is dead anyway
	}
	if o := ownerOf(f.Entry, f.Evidence, f.session); o.Life == machine.Alive && o.PID != a.Client.PID {
		return &o
	}
	return nil
}

// SameClient reports whether the client around the asking hook got the entry, in this session or an earlier one.
func (f *Flight) SameClient() bool {
	if pid := f.by.Client.PID; pid != 0 && f.PID != 0 {
		return pid == f.PID && f.Life() == machine.Alive
	}
	return f.inSession()
}

// isClient reports whether the asker's client is the very process that got the entry, or names itself nowhere. The id
// alone proves nothing, because in containers it is often 1.
func (f *Flight) isClient() bool {
	pid := f.by.Client.PID
	return pid == f.PID && (pid == 0 || f.ProcessStart != 0 && f.Life() == machine.Alive)
}

func (f *Flight) inSession() bool { return f.by.Stop.SessionID == f.Entry.SessionID }

// restart is whether a session has started again since the delivery.
type restart int

const (
	notRestarted restart = iota
	restarted
	restartUnknown // an earlier release delivered it, or its journal is gone
)

// restarted distinguishes a resumed session, which has started again, from one whose turn a person ended.
func (f *Flight) restarted() restart {
	s := f.session()
	if s.StartedAt == nil {
		return notRestarted
	}
	since := f.Entry.DeliveredSeq
	if f.Prompted || f.BoundSeq != 0 {
		since = f.BoundSeq // the session may have started after the delivery
	}
	switch {
	case since == 0 || f.Entry.DeliveredSeq == 0:
		return restartUnknown
	case s.StartedSeq > since:
		return restarted
	}
	return notRestarted // also if an earlier release noted the start, which then came before the delivery
}

// byBlock returns the entry as a text that a Stop handed over, to search for in this transcript.
func (f *Flight) byBlock(transcript string) agent.Delivery {
	return agent.Delivery{
		Path: transcript, Size: f.TranscriptSize, Text: f.Handed(f.Entry), PromptID: f.Entry.PromptID,
		Reply: f.Reply, Fresh: f.Fresh, From: f.From, Times: int(f.Times),
	}
}

// ofOneProcess is byBlock for the lines that the process wrote that got the entry. known is false if these cannot be
// distinguished from others.
func (f *Flight) ofOneProcess() (seen agent.Delivery, known bool) {
	if f.Woken || f.Prompted || f.TranscriptSize < 0 || f.Transcript == "" {
		return seen, false
	}
	seen = f.byBlock(f.Transcript)
	switch f.restarted() {
	case notRestarted:
		return seen, true
	case restartUnknown:
		return seen, false
	}
	path, size, _ := agent.StartOf(f.session().StartNote)
	seen.End = size
	return seen, path == f.Transcript && size > 0
}

// Woke reports whether the transcript shows that the text woke the session: in the turn with this id, or in any if it
// is empty.
func (f *Flight) Woke(promptID string) bool { return f.wake().Asked(promptID) }

// wake returns the entry as the prompt that the client makes of a text that wakes it, to search for in the transcript.
func (f *Flight) wake() claude.Prompted {
	return claude.Prompted{Path: f.Transcript, Size: max(0, f.TranscriptSize), Text: f.Handed(f.Entry), Wakes: true}
}

// prompt returns the entry as the session's prompt, to search for in the transcript. A bound delivery names its own
// transcript; any other is searched for in path, from size on.
func (f *Flight) prompt(path string, size int64) claude.Prompted {
	if f.IsBound() {
		path, size = f.Transcript, f.TranscriptSize
	}
	if size < 0 {
		path, size = "", 0
	}
	return claude.Prompted{Path: path, Size: size, Text: f.Entry.Text(), PromptID: f.Entry.PromptID}
}

// sinceStart is prompt for the transcript of the client that got the entry. known is false if no hook has reported that
// client's start.
func (f *Flight) sinceStart() (seen claude.Prompted, known bool) {
	path, size := "", int64(0)
	if known = Started(f.session(), f.Entry); known {
		path, size, _ = agent.StartOf(f.session().StartNote)
	}
	return f.prompt(path, size), known
}

// Started reports whether a hook has reported the start of the session's client since the delivery.
func Started(s inbox.Session, d *inbox.Delivery) bool {
	return s.ID != "" && d.DeliveredSeq != 0 && s.StartedSeq >= d.DeliveredSeq
}

// StartSize returns the size in bytes that the transcript of the asker's session s had when the client started whose
// prompt the entry is. It returns -1 if no hook has reported that start.
func (f *Flight) StartSize(s inbox.Session) int64 {
	if path, size, _ := agent.StartOf(s.StartNote); Started(s, f.Entry) && path == f.by.Stop.TranscriptPath {
		return size
	}
	return -1
}

// Kept reports whether the client has kept the session's conversation and can resume it.
func Kept(s inbox.Session) bool {
	path, _, _ := agent.StartOf(s.StartNote)
	return claude.TranscriptSize(path) > 0
}

// Failed reports whether the transcript shows an API error that ended the entry's turn and that no hook reports: see
// [agent.Seen].
func (f *Flight) Failed() (at time.Time, name, message string, failed bool) {
	return f.byBlock(f.Transcript).Seen().Failed()
}

// unreportedFailure is [Flight.Failed], unless what is known already decides.
func (f *Flight) unreportedFailure(s Sight) (at time.Time, name, message string, unreported bool) {
	if s.Ended || s.NotHandedOver || s.Over != nil || f.Entry.Failure != nil || f.Entry.Verdict != nil {
		return at, "", "", false
	}
	return f.Failed()
}

// finished reports whether the transcript proves that the entry's turn ended, and returns its reply.
func (f *Flight) finished() (reply string, finished bool) {
	if f.Prompted {
		if seen, known := f.sinceStart(); known || f.IsBound() {
			return seen.Finished()
		}
	} else if f.Woken && f.Token != "" { // without it another delivery's text may be the same
		return f.wake().Finished()
	} else if seen, known := f.ofOneProcess(); known {
		return seen.Seen().Finished()
	}
	return "", false
}

// unreached reports whether it is proven that the model did not get the text. out is what the client printed.
func (f *Flight) unreached(out Output) bool {
	in := f.by.Stop
	switch {
	case f.Woken:
		// The client runs a hook before it asks the model. An earlier prompt proves that the hook works in this session.
		return f.session().PromptedAt != nil && !f.Bound && !f.Woke("")
	case in != nil && f.Prompted && f.Start == f.by.Start:
		return false // a turn of its client ends, and may have been its text
	case in != nil && f.inSession() && f.restarted() != restarted && !f.isClient():
		return false // it was resumed in another process, and nobody noted when
	case f.Prompted:
		return f.neverPrompted(out)
	}
	seen, known := f.ofOneProcess()
	return known && seen.Seen().Missed()
}

// neverPrompted reports whether certainly no model was asked about the text. The client runs hooks at the session's
// start, and then at each prompt before it asks the model.
func (f *Flight) neverPrompted(out Output) bool {
	seen, started := f.sinceStart()
	switch {
	case f.IsBound() || out.Asked:
		return false
	case out.Known && !out.Began:
		return true
	case out.Known && !started, f.Entry.DeliveredSeq == 0: // no hook reported what it did; the hand-over note is gone
		return false
	case !f.handed:
		return true
	case !started:
		return f.Entry.SessionID != "" && f.Hooks
	}
	return !seen.Asked("")
}
