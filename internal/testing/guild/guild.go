package guild

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
)

// Options say how the guild behaves.
type Options struct {
	State string // the file that holds everything; empty for none
	// Cancelled has "cancelled" taken as the status of a record. The guild of the
	// babysitter does not take it.
	Cancelled bool
	// Strict authorises reports as the guild of the babysitter does: the session must be
	// known, and pending or running. Without it a record of an unknown session makes
	// one, and a repeated one is answered.
	Strict bool
	// DeadLetters is a folder that is drained as the guild of the babysitter does at its
	// start: each *.json is a record, whoever is allowed to send one and whatever its
	// status, and is removed.
	DeadLetters string
}

// Guild is one guild. It may be used by several goroutines.
type Guild struct {
	options Options
	file    *os.File
	closed  chan struct{}
	once    sync.Once

	mu       sync.Mutex
	sessions map[string]*Session
	tools    map[string]Tool // by name
	faults   []*Fault
}

// Open returns a guild that holds what its state file says.
func Open(o Options) (*Guild, error) {
	g := &Guild{options: o, closed: make(chan struct{}), sessions: map[string]*Session{}, tools: map[string]Tool{}}
	if o.State == "" {
		return g, g.drain()
	}
	if err := g.replay(); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(o.State, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	g.file = f
	return g, g.drain()
}

// Close ends requests that hang, and closes the state file.
func (g *Guild) Close() error {
	g.once.Do(func() { close(g.closed) })
	if g.file == nil {
		return nil
	}
	return g.file.Close()
}

// maxBody is the largest request, in bytes.
const maxBody = 2 << 30

// ServeHTTP implements [http.Handler].
func (g *Guild) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if route, ok := strings.CutPrefix(r.URL.Path, "/control/"); ok {
		g.control(w, r, route)
		return
	}
	kind := g.kindOf(r)
	if g.fails(w, r, kind, AtStart) {
		return
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody))
	if err != nil {
		return // the client went away: nothing was applied
	}
	if g.fails(w, r, kind, WhenRead) {
		return
	}
	status, answer := g.answer(r, kind, body)
	if g.fails(w, r, kind, WhenApplied) {
		return
	}
	text, err := json.Marshal(answer)
	if err != nil {
		status, text = http.StatusInternalServerError, []byte(`{"error":"no JSON"}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", fmt.Sprint(len(text)))
	w.WriteHeader(status)
	_, _ = w.Write(text[:len(text)/2]) // a client that went away gets none of it
	if g.fails(w, r, kind, AmidAnswer) {
		return
	}
	_, _ = w.Write(text[len(text)/2:])
}

// kindOf is "running", "heartbeat", "record", "tool", or "" for what is not served.
func (g *Guild) kindOf(r *http.Request) string {
	if kind, ok := strings.CutPrefix(r.URL.Path, "/api/session/"); ok {
		if r.Method == http.MethodPost && slices.Contains([]string{"running", "heartbeat", "record"}, kind) {
			return kind
		}
		return ""
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if _, ok := g.toolAt(r); ok {
		return "tool"
	}
	return ""
}

func (g *Guild) answer(r *http.Request, kind string, body []byte) (status int, answer any) {
	if kind == "" {
		return http.StatusNotFound, refusal("not found")
	}
	caller := r.Header.Get("X-Session-Id")
	if caller == "" {
		return http.StatusUnauthorized, refusal("X-Session-Id header required for this tool")
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	switch kind {
	case "tool":
		return g.call(r, caller, body)
	case "running":
		return g.running(caller, body)
	case "heartbeat":
		return g.beat(caller, body)
	}
	return g.record(caller, body)
}

func refusal(why string) map[string]any { return map[string]any{"error": why} }
