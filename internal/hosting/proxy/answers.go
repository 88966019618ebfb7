package proxy

import (
	"context"
	"crypto/rand"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	versionHeader = "Mcp-Protocol-Version"
	// answerHeader is ours: the kit tells a call no more of its request than the headers.
	answerHeader = "X-Heartbeat-Answer"
	// sessionless is the first version of the protocol in which each request stands
	// for itself.
	sessionless = "2026-07-28"
	// sessionTimeout bounds for how long a client leaves its session behind that ends without
	// a word. Between two calls of a tool a model may think and work for hours.
	sessionTimeout = 24 * time.Hour
)

// answers serve streamable HTTP.
type answers struct {
	proxy     *Proxy
	stateful  http.Handler // versions before sessionless
	stateless http.Handler

	mu   sync.Mutex
	open map[string]*answer // by answerHeader
}

// answer is one request in progress.
type answer struct {
	*beatingWriter
	request context.Context
}

func newAnswers(p *Proxy) *answers {
	server := func(*http.Request) *mcp.Server { return p.mcp }
	return &answers{
		proxy: p,
		open:  make(map[string]*answer),
		stateful: mcp.NewStreamableHTTPHandler(server, &mcp.StreamableHTTPOptions{
			MaxRequestBodyBytes: maxRequest, SessionTimeout: sessionTimeout}),
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
	a.stateful.ServeHTTP(one, r)
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

// beatingWriter lets comments be written between the events of a stream. The kit
// writes each event in one Write, so a lock around Write keeps events whole.
type beatingWriter struct {
	http.ResponseWriter
	mu      sync.Mutex
	begun   bool // a comment may be the first thing written
	started bool // the head is out
	stream  bool // and announced a stream of events
	ended   bool
}

func newBeatingWriter(w http.ResponseWriter) *beatingWriter {
	return &beatingWriter{ResponseWriter: w}
}

// head notes whether what follows is a stream.
func (b *beatingWriter) head() {
	if !b.started {
		b.started = true
		b.stream = strings.HasPrefix(b.Header().Get("Content-Type"), "text/event-stream")
	}
}

func (b *beatingWriter) WriteHeader(status int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.head()
	b.ResponseWriter.WriteHeader(status)
}

func (b *beatingWriter) Write(event []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ended {
		return 0, io.ErrClosedPipe
	}
	b.head()
	return b.ResponseWriter.Write(event)
}

// FlushError is what http.ResponseController looks for.
func (b *beatingWriter) FlushError() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ended {
		return io.ErrClosedPipe
	}
	b.head()
	return http.NewResponseController(b.ResponseWriter).Flush()
}

// beat writes a comment each interval, so that nobody on the way takes a quiet stream
// for a dead one. The function it returns ends that, and all use of the writer.
func (b *beatingWriter) beat(interval time.Duration) (end func()) {
	ticker := time.NewTicker(interval)
	stop := make(chan struct{})
	go func() {
		for {
			select {
			case <-ticker.C:
				b.comment()
			case <-stop:
				return
			}
		}
	}()
	return func() {
		ticker.Stop()
		close(stop)
		b.mu.Lock()
		defer b.mu.Unlock()
		b.ended = true
	}
}

// begin says that what follows is a stream, even if its first event is still to come.
func (b *beatingWriter) begin() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.begun = true
}

// comment leaves alone what is no stream, and what may still become an error with a
// status of its own.
func (b *beatingWriter) comment() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ended || !b.begun && !b.started {
		return
	}
	if b.head(); !b.stream {
		return
	}
	if _, err := io.WriteString(b.ResponseWriter, ":keepalive\n\n"); err == nil {
		_ = http.NewResponseController(b.ResponseWriter).Flush() // the next write tells of a dead connection
	}
}
