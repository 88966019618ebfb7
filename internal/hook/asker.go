package hook

import (
	"time"

	"heartbeat/inbox"
	"heartbeat/internal/agent"
	"heartbeat/internal/claude"
	"heartbeat/internal/machine"
	"heartbeat/internal/words"
	recovery "heartbeat/recover"
)

func (h *hook) asker() recovery.Asker {
	a := recovery.Asker{
		Settings: h.Orphan, Box: h.box, Client: inbox.Process{PID: h.clientPID()}, Start: h.Start,
		Elsewhere: h.settledElsewhere, Note: func(format string, args ...any) { h.Note(format, args...) },
	}
	a.Limits = h.Limits
	if h.input != nil {
		a.Stop = &recovery.Stop{Input: h.input, Began: h.Began, Background: h.Rewake, TaskLimit: time.Duration(h.Background)}
	}
	return a
}

func (h *hook) flight(tx *inbox.Tx) *recovery.Flight { return h.asker().Flight(tx) }

// judge returns the entry that tx has in flight, or nil, and what this Stop means for it.
func (h *hook) judge(tx *inbox.Tx) (*recovery.Flight, recovery.StopMeaning) {
	f := h.flight(tx)
	if f == nil {
		return nil, 0
	}
	means, waitFor := f.StopMeans(h.watched.deadline.IsZero() || time.Now().Before(h.watched.deadline))
	switch means {
	case recovery.Unsure:
		if h.watched.deadline.IsZero() {
			h.watched.deadline = time.Now().Add(transcriptWait)
		}
		h.watched.path, h.watched.size = waitFor, claude.TranscriptSize(waitFor)
	case recovery.Unproven:
		h.Note("nothing is taken for an answer to the entry %s: this Stop has the same input as the one that delivered it, and no transcript shows that it is another", words.Name(f.Entry.ID(), f.Entry.EntryID))
	}
	return f, means
}

func (h *hook) client() *agent.Agent {
	if h.input == nil {
		return agent.ForTranscript("")
	}
	return agent.ForTranscript(h.input.TranscriptPath)
}

// clientPID returns the client's process id, or 0. Only the first call may search the processes above this one, as it
// must for a client that does not name its id.
func (h *hook) clientPID() int {
	if !h.pidKnown {
		h.pid, h.pidKnown = h.client().PID(h.Parent), true
	}
	return h.pid
}

const (
	// transcriptWait is how long the transcript may take to show an answer: the client writes it late.
	transcriptWait = 1500 * time.Millisecond
	transcriptPoll = 10 * time.Millisecond
)

// isInner reports whether a tool of the session that has the entry in flight started this hook's session. The entry's
// turn waits for this session, which must neither wait for that turn nor have the launcher end it. A session with a
// launcher of its own does not count, because nobody else ends it.
func (h *hook) isInner() (is bool) {
	if h.box == nil || h.Launched {
		return false
	}
	h.withView(func(view *inbox.View) {
		o, client := recovery.LivingOwner(view), h.clientPID()
		is = o != nil && o.PID != client && machine.Nearest(client, func(p int) bool { return p == o.PID }) != 0
	})
	return is
}
