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
	// answerHeader connects a call to its request: the MCP library gives a call only the headers.
	answerHeader = "X-Heartbeat-Answer"
	// sessionless is the first protocol version without sessions.
	sessionless = "2026-07-28"
	// sessionTimeout is how long a silent client's session stays. A model may work for hours between two tool calls.
	sessionTimeout = 24 * time.Hour
)

func (p *Proxy) serve(w http.ResponseWriter, r *http.Request) {
	one := &beatingWriter{ResponseWriter: w, request: r.Context()}
	defer one.beat(p.options.KeepAlive)()
	id := rand.Text()
	r.Header.Set(answerHeader, id)
	p.answers.Store(id, one)
	defer p.answers.Delete(id)
	if r.Header.Get(versionHeader) >= sessionless {
		p.stateless.ServeHTTP(one, r)
		return
	}
	p.stateful.ServeHTTP(one, r)
}

// inProgress lets a call's stream begin before its result: Claude Code gives up on an answer that has not
// begun after 60 s. The stream begins with the first comment, not at once: if the connection is lost before
// that, the client notices at once; if it is lost later, the client waits 90 s for the rest.
//
// The call ends with its request, since nothing else can deliver its result.
func (p *Proxy) inProgress(ctx context.Context, extra *mcp.RequestExtra) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	answer, open := p.answers.Load(extra.Header.Get(answerHeader))
	if !open { // its request has ended already
		cancel()
		return ctx, cancel
	}
	one := answer.(*beatingWriter)
	one.mu.Lock()
	one.begun = true
	one.mu.Unlock()
	context.AfterFunc(one.request, cancel)
	return ctx, cancel
}

// beatingWriter writes comments between the events of a stream. The MCP library writes each event in one
// Write, so a lock around Write keeps events whole.
type beatingWriter struct {
	http.ResponseWriter
	request context.Context // ends with the request
	mu      sync.Mutex
	begun   bool // a comment may be the first thing written
	started bool // the headers are out
	stream  bool // the headers announced a stream of events
	ended   bool
}

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

// FlushError is called by http.ResponseController.
func (b *beatingWriter) FlushError() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ended {
		return io.ErrClosedPipe
	}
	b.head()
	return http.NewResponseController(b.ResponseWriter).Flush()
}

// beat writes a comment at each interval, so that a quiet stream does not count as dead. end stops the
// comments, and all use of the writer.
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

// comment writes a comment, unless the answer is no stream, or may still become an error with its own status.
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
		_ = http.NewResponseController(b.ResponseWriter).Flush() // the next write reports a dead connection
	}
}
