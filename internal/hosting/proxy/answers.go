package proxy

import (
	"context"
	"crypto/rand"
	"net/http"
	"slices"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	versionHeader = "Mcp-Protocol-Version"
	sessionHeader = "Mcp-Session-Id"
	// answerHeader is ours: the kit tells a call no more of its request than the headers.
	answerHeader = "X-Heartbeat-Answer"
	// sessionless is the first version of the protocol in which each request stands
	// for itself.
	sessionless = "2026-07-28"
	// maxSessions bounds what clients leave behind that end without a word.
	maxSessions = 64
)

// answers serve streamable HTTP.
type answers struct {
	proxy     *Proxy
	stateful  http.Handler // versions before sessionless
	stateless http.Handler

	mu       sync.Mutex
	open     map[string]*answer // by answerHeader
	sessions []*session         // least recently used first
}

// answer is one request in progress.
type answer struct {
	*beatingWriter
	request context.Context
}

// session is what is known here of a session that the kit keeps.
type session struct {
	id   string
	open int // requests in progress
}

func newAnswers(p *Proxy) *answers {
	server := func(*http.Request) *mcp.Server { return p.mcp }
	return &answers{
		proxy: p,
		open:  make(map[string]*answer),
		stateful: mcp.NewStreamableHTTPHandler(server, &mcp.StreamableHTTPOptions{
			MaxRequestBodyBytes: maxRequest}),
		stateless: mcp.NewStreamableHTTPHandler(server, &mcp.StreamableHTTPOptions{
			MaxRequestBodyBytes: maxRequest, Stateless: true, PropagateRequestCancellation: true}),
	}
}

// serve answers one request on /mcp.
func (a *answers) serve(w http.ResponseWriter, r *http.Request) {
	one := &answer{newBeatingWriter(w), r.Context()}
	defer one.beat(a.proxy.options.KeepAlive)()
	defer a.register(one, r)()
	if r.Header.Get(versionHeader) >= sessionless {
		a.stateless.ServeHTTP(one, r)
		return
	}
	defer a.use(r.Header.Get(sessionHeader))()
	a.stateful.ServeHTTP(one, r)
	a.keep(w.Header().Get(sessionHeader))
}

// register makes the answer known to the calls of the request, until the function that
// it returns is called.
func (a *answers) register(one *answer, r *http.Request) (forget func()) {
	id := rand.Text()
	r.Header.Set(answerHeader, id)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.open[id] = one
	return func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		delete(a.open, id)
	}
}

// inProgress lets the stream of a call begin before its result: Claude Code gives up on
// an answer that has not begun after 60 s. It begins with the first comment and not at
// once, because the client takes a connection lost before that for lost, and waits 90 s
// for the rest of one lost later.
//
// The call ends with its request: there is no other way to deliver its result.
func (a *answers) inProgress(ctx context.Context, extra *mcp.RequestExtra) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	if extra == nil { // a call on /sse
		return ctx, cancel
	}
	a.mu.Lock()
	one := a.open[extra.Header.Get(answerHeader)]
	a.mu.Unlock()
	if one == nil { // its request has ended already
		cancel()
		return ctx, cancel
	}
	one.begin()
	context.AfterFunc(one.request, cancel)
	return ctx, cancel
}

// keep takes a session into the list that was begun just now, and closes the one that
// has been idle for longest when there are too many.
func (a *answers) keep(id string) {
	if id == "" {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.sessions = append(a.sessions, &session{id: id})
	if len(a.sessions) <= maxSessions {
		return
	}
	idle := slices.IndexFunc(a.sessions, func(one *session) bool { return one.open == 0 })
	gone := a.sessions[idle].id
	a.sessions = slices.Delete(a.sessions, idle, idle+1)
	for one := range a.proxy.mcp.Sessions() {
		if one.ID() == gone {
			go func() { _ = one.Close() }() // its client has gone
		}
	}
}

// use marks a session as in use until the function that it returns is called.
func (a *answers) use(id string) (done func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	i := slices.IndexFunc(a.sessions, func(one *session) bool { return one.id == id })
	if i < 0 {
		return func() {}
	}
	one := a.sessions[i]
	one.open++
	a.sessions = append(slices.Delete(a.sessions, i, i+1), one)
	return func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		one.open--
	}
}
