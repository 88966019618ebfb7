package guild

import (
	"encoding/json"
	"net/http"
)

func (g *Guild) control(w http.ResponseWriter, r *http.Request, route string) {
	if r.Method == http.MethodGet && route == "sessions" {
		g.mu.Lock()
		text, err := json.Marshal(g.sessions)
		g.mu.Unlock()
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		_, _ = w.Write(text)
		return
	}
	if r.Method == http.MethodDelete && route == "faults" {
		g.Mend()
		return
	}
	var err error
	switch {
	case r.Method != http.MethodPost:
		http.NotFound(w, r)
	case route == "sessions":
		var s struct {
			ID    string   `json:"id"`
			Tools []string `json:"tools"`
		}
		if err = json.NewDecoder(r.Body).Decode(&s); err == nil {
			g.Expect(s.ID, s.Tools...)
		}
	case route == "tools":
		var t Tool
		if err = json.NewDecoder(r.Body).Decode(&t); err == nil {
			g.AddTool(t)
		}
	case route == "faults":
		var f Fault
		if err = json.NewDecoder(r.Body).Decode(&f); err == nil {
			g.Break(f)
		}
	default:
		http.NotFound(w, r)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
	}
}
