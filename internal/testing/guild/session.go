package guild

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"slices"
)

// Session is what the guild holds of a session.
type Session struct {
	ID     string   `json:"id"`
	Status string   `json:"status"` // pending, running, or how it ended
	Tools  []string `json:"tools,omitempty"`
	PGID   int      `json:"pgid,omitempty"` // of the cancel handle

	Running Count `json:"running"`
	Beats   int   `json:"beats"`
	Record  Count `json:"record"`

	// Of the record that was applied: its members without the transcript, how many
	// messages that has, and its SHA-256 in hex.
	Report     map[string]json.RawMessage `json:"report,omitempty"`
	Messages   int                        `json:"messages,omitempty"`
	Transcript string                     `json:"transcript,omitempty"`

	Calls map[string]int `json:"calls,omitempty"` // of tools, that ran
	Keys  []string       `json:"keys,omitempty"`  // the Idempotency-Keys of those calls, in order
}

// Count tells a report that was applied from its repetitions and refusals.
type Count struct {
	Applied  int `json:"applied"`
	Repeated int `json:"repeated"`
	Refused  int `json:"refused"`
}

func (s *Session) ended() bool {
	return s.Status != "" && s.Status != "pending" && s.Status != "running"
}

func (g *Guild) session(id string) *Session {
	if g.sessions[id] == nil {
		g.sessions[id] = &Session{ID: id, Calls: map[string]int{}}
	}
	return g.sessions[id]
}

// Expect makes a pending session that may call these tools, as the guild of the
// babysitter does before it starts a host.
func (g *Guild) Expect(id string, tools ...string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	s := g.session(id)
	s.Status, s.Tools = "pending", tools
	g.save(s)
}

// Session is what the guild holds of a session now, and whether it knows it.
func (g *Guild) Session(id string) (Session, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	s, known := g.sessions[id]
	if !known {
		return Session{}, false
	}
	return s.copy(), true
}

func (s *Session) copy() Session {
	text, err := json.Marshal(s)
	var c Session
	if err == nil {
		err = json.Unmarshal(text, &c)
	}
	if err != nil {
		panic(err) // it was read from JSON
	}
	return c
}

// strange is why a caller may not send reports; nil if it may.
func (g *Guild) strange(caller string) (status int, answer any) {
	s := g.sessions[caller]
	if g.options.Strict && (s == nil || s.Status == "" || s.ended()) {
		return http.StatusForbidden, refusal("Session not authorized to call this tool")
	}
	return 0, nil
}

func (g *Guild) running(caller string, body []byte) (int, any) {
	s := g.session(caller)
	if status, answer := g.strange(caller); status != 0 {
		s.Running.Refused++
		g.save(s)
		return status, answer
	}
	var r struct {
		SessionID, StartedAt, Provider string
		CancelHandle                   *struct {
			Kind string
			PGID int
		}
	}
	err := json.Unmarshal(body, &r)
	if err != nil || r.SessionID != caller || r.CancelHandle == nil || r.CancelHandle.Kind != "local-pgid" || r.CancelHandle.PGID <= 0 {
		s.Running.Refused++
		g.save(s)
		return http.StatusBadRequest, map[string]any{"error": "Validation failed", "details": string(body)}
	}
	answer := map[string]any{"ok": true, "sessionId": caller}
	switch {
	case s.ended():
		s.Running.Repeated++
		answer["status"] = s.Status
	case s.Status == "running":
		s.Running.Repeated++
	default:
		s.Running.Applied++
		s.Status = "running"
	}
	if !s.ended() {
		s.PGID = r.CancelHandle.PGID
	}
	g.save(s)
	return http.StatusOK, answer
}

func (g *Guild) beat(caller string, body []byte) (int, any) {
	var r struct{ SessionID string }
	if err := json.Unmarshal(body, &r); err != nil || r.SessionID == "" {
		return http.StatusBadRequest, refusal("Validation failed")
	}
	if status, answer := g.strange(caller); status != 0 {
		return status, answer
	}
	s := g.sessions[r.SessionID]
	if s == nil || s.Status == "" {
		return http.StatusOK, map[string]any{"ok": false, "error": "Session not found"}
	}
	s.Beats++
	g.save(s)
	return http.StatusOK, map[string]any{"ok": true, "sessionId": s.ID, "status": s.Status}
}

func (g *Guild) record(caller string, body []byte) (int, any) {
	if status, answer := g.strange(caller); status != 0 {
		s := g.session(caller)
		s.Record.Refused++
		g.save(s)
		return status, answer
	}
	var r map[string]json.RawMessage
	var id, status string
	err := json.Unmarshal(body, &r)
	if err == nil {
		_ = json.Unmarshal(r["sessionId"], &id)
		_ = json.Unmarshal(r["status"], &status) // what is no string is refused as empty
	}
	takes := []string{"completed", "failed", "timeout", "rate-limited"}
	if g.options.Cancelled {
		takes = append(takes, "cancelled")
	}
	s := g.session(caller)
	if err != nil || id != caller || !slices.Contains(takes, status) {
		s.Record.Refused++
		g.save(s)
		return http.StatusBadRequest, map[string]any{"error": "Validation failed", "details": status}
	}
	g.apply(s, status, r)
	return http.StatusOK, map[string]any{"ok": true, "sessionId": id, "status": s.Status}
}

// apply takes a record, unless the session is over.
func (g *Guild) apply(s *Session, status string, r map[string]json.RawMessage) {
	if s.ended() {
		s.Record.Repeated++
	} else {
		s.Record.Applied++
		s.Status = status
		var transcript []json.RawMessage
		_ = json.Unmarshal(r["transcript"], &transcript) // what is no array has no messages
		sum := sha256.Sum256(r["transcript"])
		s.Messages, s.Transcript = len(transcript), hex.EncodeToString(sum[:])
		delete(r, "transcript")
		s.Report = r
	}
	g.save(s)
}

// drain takes the records in the folder of dead letters.
func (g *Guild) drain() error {
	if g.options.DeadLetters == "" {
		return nil
	}
	names, err := filepath.Glob(filepath.Join(g.options.DeadLetters, "*.json"))
	if err != nil {
		return err
	}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		var r map[string]json.RawMessage
		var id, status string
		if err := json.Unmarshal(text, &r); err != nil {
			continue // it stays, as there
		}
		_ = json.Unmarshal(r["sessionId"], &id)
		_ = json.Unmarshal(r["status"], &status) // not looked at, as there
		g.apply(g.session(id), status, r)
		if err := os.Remove(name); err != nil {
			return err
		}
	}
	return nil
}
