package model

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

// Script decides what the model answers to one main request. It is called from
// the goroutine that serves the request, so several calls may run at once when
// the client works in parallel.
type Script func(Request) Reply

// Echo is the default script: it answers "answer to: " and the request's
// UserText.
func Echo(r Request) Reply { return Text("answer to: " + r.UserText) }

// sideAnswer is what every side request gets; no test depends on its words.
const sideAnswer = "side answer"

// Model is one running stand-in. Its methods may be called from any goroutine.
type Model struct {
	script Script
	server *http.Server
	url    string
	served chan struct{} // closed when the accept loop has returned
	closed chan struct{} // closed by Close; releases waits and hanging replies
	once   sync.Once

	mu       sync.Mutex
	requests []Request
	mains    int
	arrived  chan struct{} // closed and replaced whenever a request is recorded
}

// Start listens on a free port of 127.0.0.1 and serves until Close. A nil
// script means Echo. The error is the listener's.
func Start(script Script) (*Model, error) {
	if script == nil {
		script = Echo
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("model: listen on loopback: %w", err)
	}
	m := &Model{
		script:  script,
		url:     "http://" + ln.Addr().String(),
		served:  make(chan struct{}),
		closed:  make(chan struct{}),
		arrived: make(chan struct{}),
	}
	m.server = &http.Server{Handler: m.routes(), ReadHeaderTimeout: 10 * time.Minute}
	go func() {
		defer close(m.served)
		_ = m.server.Serve(ln) // always ends with http.ErrServerClosed after Close
	}()
	return m, nil
}

// URL is the base address for ANTHROPIC_BASE_URL, such as
// "http://127.0.0.1:40123", without a trailing slash.
func (m *Model) URL() string { return m.url }

// Close ends every connection, releases hanging replies and waiters, and
// returns once the port is free. Further calls do nothing.
func (m *Model) Close() {
	m.once.Do(func() {
		close(m.closed)
		_ = m.server.Close() // the listener's close error is of no use to a test
		<-m.served
	})
}

// routes maps the few paths a client asks for.
func (m *Model) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/messages", m.messages)
	mux.HandleFunc("POST /v1/messages/count_tokens", countTokens)
	mux.HandleFunc("POST /v1/responses", m.responses)
	mux.HandleFunc("GET /v1/models", models)
	mux.HandleFunc("/", other)
	return mux
}

// messages records the request first and answers second: a waiter must see a
// request whose answer never comes.
func (m *Model) messages(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client has gone; there is nobody to tell
	}
	req, err := parse(body)
	if err != nil {
		writeError(w, Error(http.StatusBadRequest, "invalid_request_error", err.Error()))
		return
	}
	req = m.record(req)
	reply := Text(sideAnswer)
	if req.Main {
		reply = m.script(req)
	}
	if reply.Alive && req.Stream && reply.Err == nil {
		msg := newMessage(req, reply)
		s := begin(w, msg)
		if !m.pause(r, reply, s.ping) {
			panic(http.ErrAbortHandler)
		}
		s.reply(msg, reply)
		return
	}
	if !m.pause(r, reply, func() {}) {
		panic(http.ErrAbortHandler) // drops the connection; returning would send an empty 200
	}
	if reply.Open && req.Stream {
		msg := newMessage(req, reply)
		begin(w, msg).blocks(msg, reply)
		reply.Hang = true
		m.pause(r, reply, func() {})
		panic(http.ErrAbortHandler)
	}
	write(w, req, reply)
}

const beatEvery = 5 * time.Second

// pause holds the answer back for the reply's Delay, or for good when it hangs.
// It calls each every few seconds meanwhile, and reports false when there is nobody left to
// answer.
func (m *Model) pause(r *http.Request, reply Reply, each func()) bool {
	var due <-chan time.Time // nil, so never ready, for a reply that hangs
	if !reply.Hang {
		timer := time.NewTimer(reply.Delay)
		defer timer.Stop()
		due = timer.C
	}
	beat := time.NewTicker(beatEvery)
	defer beat.Stop()
	for {
		select {
		case <-beat.C:
			each()
		case <-due:
			return true
		case <-r.Context().Done():
			return false
		case <-m.closed:
			return false
		}
	}
}

// countTokens answers a fixed number: clients only need it to be small.
func countTokens(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, json.RawMessage(`{"input_tokens":1}`))
}

// other answers probes with 200 and anything else with the API's own 404, so
// that a new call of the client shows up as an error instead of as silence.
func other(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		writeJSON(w, http.StatusOK, json.RawMessage(`{}`))
		return
	}
	writeError(w, Error(http.StatusNotFound, "not_found_error", strings.TrimSpace(r.Method+" "+r.URL.Path)))
}
