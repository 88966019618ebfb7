package session

import (
	"context"
	"encoding/json"
	"strings"

	"heartbeat/inbox"
	"heartbeat/internal/hosting/folder"
	"heartbeat/internal/hosting/stream"
	"heartbeat/internal/hosting/transcript"
)

// lastWord keeps the answer to the last entry as a message if no message has it: a client
// writes its transcript late, and the launcher may have ended it before. The hook was told
// what it said.
func (h *host) lastWord() {
	s := h.snapshot()
	r, ok := lastResult(s.Inbox)
	if !ok || r.AcknowledgedAt.Before(s.HostedAt) || strings.TrimSpace(r.Reply) == "" || h.hasSaid(r.Reply) {
		return
	}
	raw, err := json.Marshal(map[string]any{
		"type": "assistant", "sessionId": r.SessionID, "timestamp": r.AcknowledgedAt,
		"message": map[string]any{"role": "assistant", "content": []any{map[string]any{"type": "text", "text": r.Reply}}},
	})
	if err != nil {
		return // it has no value that could fail
	}
	m, ok := stream.Parse(raw)
	if !ok {
		return
	}
	m.SessionID = r.SessionID
	h.keep(m)
	h.change(func(s *folder.State) { h.watchLive(s) })
}

// lastResult is the newest line of an inbox's results.
func lastResult(path string) (r inbox.Result, ok bool) {
	box, err := inbox.Open(path, inbox.Options{})
	if err != nil {
		return r, false
	}
	tail, err := box.TailResults(1)
	if err != nil {
		return r, false
	}
	defer tail.Close() // it was only read
	err = tail.Lines(func(line []byte) { ok = json.Unmarshal(line, &r) == nil })
	return r, ok && err == nil
}

// latest is among how many of the last messages an answer is looked for.
const latest = 32

// hasSaid reports whether one of the last messages is this answer. Blanks are left out: the
// client tells its hooks a text without those around it.
func (h *host) hasSaid(reply string) bool {
	bare := func(text string) string { return strings.Join(strings.Fields(text), "") }
	o := transcriptOf(h.db, h.lock.Folder(), nil)
	for m, err := range transcript.ReadEnded(context.Background(), o, h.store.Last()-latest) {
		var t stream.Tally
		if parsed, ok := stream.Parse(m.Content); err == nil && ok {
			t.Add(parsed, m.At)
		}
		if t.Text != nil && bare(*t.Text) == bare(reply) {
			return true
		}
	}
	return false
}
