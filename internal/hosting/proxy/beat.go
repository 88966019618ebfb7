package proxy

import (
	"io"
	"net/http"
	"strings"
	"sync"
	"time"
)

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
