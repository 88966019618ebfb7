package recover

import (
	"heartbeat/inbox"
	"heartbeat/internal/agent"
	"heartbeat/internal/claude"
	"heartbeat/internal/flat"
)

// Prompt is kept with a delivery that is the prompt with which a client is started. It is
// in flight before that client exists, and [inbox.Tx.HandedOver] is noted right before
// the client is started, so that without that note nobody got the text.
type Prompt struct {
	Prompted bool
	// Start names the start of the client. Only the hook of that client has it.
	Start string
	// Hooks says that nothing is known to keep the client from running its hooks.
	Hooks bool
	// BoundSeq is the number of the commit in which the client's hook bound the delivery
	// to the prompt that the client made of it, 0 before: see [inbox.Tx.Seq].
	BoundSeq int64
}

func (p Prompt) encode(o *flat.Object) {
	if !p.Prompted {
		return
	}
	o.Bool("prompted", true)
	o.Text("start", p.Start)
	if p.Hooks {
		o.Bool("hooks", true)
	}
	if p.BoundSeq != 0 {
		o.Int("bound_seq", p.BoundSeq)
	}
}

func promptOf(m *flat.Members) Prompt {
	return Prompt{Prompted: m.Bool("prompted"), Start: m.String("start"), Hooks: m.Bool("hooks"), BoundSeq: m.Int("bound_seq")}
}

// IsBound reports whether the client is known to have made a prompt of the text.
func (p Prompt) IsBound() bool { return p.BoundSeq != 0 }

// InPrompt asks the transcript at path, unless the delivery names another, about an
// entry that was the session's prompt.
func (e Evidence) InPrompt(d *inbox.Delivery, path string, size int64) claude.Prompted {
	if e.IsBound() {
		path, size = e.Transcript, e.TranscriptSize
	}
	if size < 0 {
		path, size = "", 0
	}
	return claude.Prompted{Path: path, Size: size, Text: d.Text(), PromptID: d.PromptID}
}

// sinceStart asks the transcript of the client that got the prompt. A client that no
// hook has told of is unknown.
func (e Evidence) sinceStart(tx *inbox.Tx, d *inbox.Delivery) (seen claude.Prompted, known bool) {
	s, err := tx.Session(d.SessionID)
	if err != nil || d.SessionID == "" || d.DeliveredSeq == 0 || s.StartedSeq < d.DeliveredSeq {
		return seen, false
	}
	path, size := agent.StartOf(s.StartNote)
	return e.InPrompt(d, path, size), true
}

// Kept reports whether the client has kept a conversation of the session, so that it can
// go on with that.
func Kept(s inbox.Session) bool {
	path, _ := agent.StartOf(s.StartNote)
	return claude.TranscriptSize(path) > 0
}

// StartSize is how long a session's transcript was when the client started that has the
// delivery as its prompt, -1 if no hook has told of that.
func StartSize(tx *inbox.Tx, d *inbox.Delivery, session, transcript string) int64 {
	s, err := tx.Session(session)
	if err != nil || d.DeliveredSeq == 0 || s.StartedSeq < d.DeliveredSeq {
		return -1
	}
	if path, size := agent.StartOf(s.StartNote); path == transcript {
		return size
	}
	return -1
}

// neverPrompted reports whether it is certain that no model was asked about the text. A
// client tells its hooks of the session's start, and then of each prompt, before it asks
// the model.
func (e Evidence) neverPrompted(tx *inbox.Tx, d *inbox.Delivery) bool {
	switch {
	case e.IsBound() || d.DeliveredSeq == 0: // 0: the journal with the note is gone
		return false
	case !tx.IsHandedOver():
		return true
	case d.SessionID == "":
		return false
	}
	seen, known := e.sinceStart(tx, d)
	if !known {
		return e.Hooks
	}
	return !seen.Asked("")
}

// promptFinished reports whether the transcript proves that the prompt's turn came to its
// end.
func (e Evidence) promptFinished(tx *inbox.Tx, d *inbox.Delivery) (reply string, finished bool) {
	seen, known := e.sinceStart(tx, d)
	if e.IsBound() {
		seen, known = e.InPrompt(d, "", -1), true
	}
	if !known {
		return "", false
	}
	return seen.Finished()
}
