package session

import (
	"crypto/sha256"
	"encoding/json"
	"slices"
	"strings"
	"sync"

	"heartbeat/inbox"
	"heartbeat/internal/hosting/folder"
	"heartbeat/internal/hosting/stream"
)

// lastWord keeps the answer to the last entry as a message if no message has it: a client
// writes its transcript late, and the launcher may have ended it before. The hook was told
// what it said.
func (h *host) lastWord() {
	s := h.snapshot()
	r, ok := lastResult(s.Inbox)
	if !ok || r.AcknowledgedAt.Before(s.HostedAt) || strings.TrimSpace(r.Reply) == "" || h.said.has(r.Reply) {
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

// lately are the texts of the last messages, as sums.
type lately struct {
	mu   sync.Mutex
	sums [16][sha256.Size]byte
	next int
}

func (l *lately) add(text *string) {
	if text == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sums[l.next] = sumOf(*text)
	l.next = (l.next + 1) % len(l.sums)
}

func (l *lately) has(text string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Contains(l.sums[:], sumOf(text))
}

// sumOf leaves blanks out: the client tells its hooks a text without those around it.
func sumOf(text string) [sha256.Size]byte {
	return sha256.Sum256([]byte(strings.Join(strings.Fields(text), "")))
}
