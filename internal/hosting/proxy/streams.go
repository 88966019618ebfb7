package proxy

import (
	"fmt"
	"mime"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// maxGone is how many ended streams are remembered, so that a late message is told
// what became of its stream.
const maxGone = 64

// streams are the sessions of the HTTP+SSE transport, by id. A session lives as long
// as its stream; a client that reconnects begins another.
type streams struct {
	proxy *Proxy
	mu    sync.Mutex
	live  map[string]*stream
	gone  []goneStream // oldest first
}

type goneStream struct {
	id    string
	at    time.Time
	calls int
}

func newStreams(p *Proxy) *streams {
	return &streams{proxy: p, live: make(map[string]*stream)}
}

// serve answers GET /sse: it begins a session and holds the connection until either
// side ends it.
func (s *streams) serve(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet { // the mux passes HEAD too
		w.Header().Set("Allow", http.MethodGet)
		http.Error(w, "Method not allowed", http.StatusMethodNotAllowed)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-cache, no-transform")
	beating := newBeatingWriter(w)
	one := newStream(beating)
	start, before := time.Now(), s.proxy.counts.calls()
	s.add(one)
	session, err := s.proxy.mcp.Connect(r.Context(), one, resumed(r))
	close(one.ready)
	if err != nil { // the client left before its first event
		s.remove(one, 0)
		return
	}
	stopBeating := beating.beat(s.proxy.options.KeepAlive)
	s.proxy.log.printf("mcp-proxy: SSE connection established")
	select {
	case <-r.Context().Done():
	case <-one.ended:
	case <-s.proxy.context.Done():
	}
	// The kit's own Close would first wait for the calls in progress. Nobody can be
	// told their answers any more, so they are canceled by closing below it.
	_ = one.connection.Close()
	stopBeating()
	calls := s.proxy.counts.calls() - before
	s.remove(one, calls)
	s.proxy.log.printf("mcp-proxy: SSE connection closed after %dms (%d tool calls proxied)", time.Since(start).Milliseconds(), calls)
	_ = session.Close()
}

// resumed is the state of a session whose client lost its stream: Claude Code then opens
// another, without initializing anew, and every call on it would be refused. It is
// known by the version that was agreed on, which a first request cannot name yet.
func resumed(r *http.Request) *mcp.ServerSessionOptions {
	version := r.Header.Get(versionHeader)
	if !slices.Contains(mcp.SupportedProtocolVersions(), version) {
		return nil
	}
	return &mcp.ServerSessionOptions{State: &mcp.ServerSessionState{
		InitializeParams:          &mcp.InitializeParams{ProtocolVersion: version},
		InitializedParams:         &mcp.InitializedParams{},
		NegotiatedProtocolVersion: version,
	}}
}

// post answers POST /message: it hands one message to the session that it names.
func (s *streams) post(w http.ResponseWriter, r *http.Request) {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		http.Error(w, "Content-Type must be application/json", http.StatusUnsupportedMediaType)
		return
	}
	id := r.URL.Query().Get("sessionId")
	one, gone := s.find(id)
	if one == nil {
		s.refuse(w, gone)
		return
	}
	select {
	case <-one.ready:
	case <-r.Context().Done():
		return
	}
	one.ServeHTTP(w, r)
}

// refuse tells the client to connect anew; 404 is what clients take as that.
func (s *streams) refuse(w http.ResponseWriter, gone *goneStream) {
	if gone == nil {
		s.proxy.log.printf("mcp-proxy: POST /message without an SSE connection")
		http.Error(w, "No SSE connection has this sessionId: open GET /sse first, and post to the endpoint that it names", http.StatusNotFound)
		return
	}
	ago := time.Since(gone.at).Milliseconds()
	s.proxy.log.printf("mcp-proxy: POST /message on dead SSE connection (closed %dms ago, after %d calls)", ago, gone.calls)
	http.Error(w, fmt.Sprintf("The SSE connection of this sessionId closed %d ms ago: open GET /sse again", ago), http.StatusNotFound)
}

// find is the session of that id, or else what is remembered of its end.
func (s *streams) find(id string) (*stream, *goneStream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if one := s.live[id]; one != nil {
		return one, nil
	}
	for i := range s.gone {
		if s.gone[i].id == id {
			gone := s.gone[i]
			return nil, &gone
		}
	}
	return nil, nil
}

func (s *streams) add(one *stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.live[one.id] = one
}

func (s *streams) remove(one *stream, calls int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.live, one.id)
	s.gone = append(s.gone, goneStream{one.id, time.Now(), calls})
	if len(s.gone) > maxGone {
		s.gone = slices.Delete(s.gone, 0, 1)
	}
}
