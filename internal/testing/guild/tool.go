package guild

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
)

// Tool is a tool that the guild serves.
type Tool struct {
	Name   string `json:"name"`
	Method string `json:"method"` // GET, POST or DELETE; empty is POST
	// Answer is what the tool answers. Nothing answers the arguments: the body, or the
	// query as an object of strings.
	Answer json.RawMessage `json:"answer,omitempty"`
	Size   int             `json:"size,omitempty"`   // answers a string of so many bytes instead
	Status int             `json:"status,omitempty"` // 0 is 200
	// Keyed has calls with an Idempotency-Key that ran before answered without another
	// run.
	Keyed bool `json:"keyed,omitempty"`
}

// AddTool serves a tool from now on.
func (g *Guild) AddTool(t Tool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if t.Method == "" {
		t.Method = http.MethodPost
	}
	g.tools[t.Name] = t
	g.append(event{Tool: &t})
}

// toolAt is the tool that a request is for. The caller holds the lock.
func (g *Guild) toolAt(r *http.Request) (Tool, bool) {
	for _, t := range g.tools {
		group, action, split := strings.Cut(t.Name, "-")
		route := "/api/" + group
		if split {
			route += "/" + action
		}
		if r.URL.Path == route && r.Method == t.Method {
			return t, true
		}
	}
	return Tool{}, false
}

// call runs a tool. The caller holds the lock.
func (g *Guild) call(r *http.Request, caller string, body []byte) (int, any) {
	tool, _ := g.toolAt(r)
	s, known := g.sessions[caller]
	if !known || s.ended() || !slices.Contains(s.Tools, tool.Name) {
		return http.StatusForbidden, refusal("Session not authorized to call this tool")
	}
	key := r.Header.Get("Idempotency-Key")
	if !tool.Keyed || !slices.Contains(s.Keys, key) {
		s.Calls[tool.Name]++
		s.Keys = append(s.Keys, key)
		g.save(s)
	}
	status := tool.Status
	if status == 0 {
		status = http.StatusOK
	}
	switch {
	case tool.Size > 0:
		return status, strings.Repeat("x", tool.Size)
	case tool.Answer != nil:
		return status, tool.Answer
	case r.Method == http.MethodGet:
		query := map[string]string{}
		for name, values := range r.URL.Query() {
			query[name] = values[len(values)-1]
		}
		return status, query
	}
	return status, json.RawMessage(body)
}
