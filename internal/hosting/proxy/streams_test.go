package proxy

import (
	"bufio"
	"context"
	"net/http"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// open is one stream of GET /sse, read by hand.
type openStream struct {
	t        *testing.T
	body     *bufio.Reader
	endpoint string // of its session
	close    context.CancelFunc
}

// open begins a stream, with more headers where some are given.
func open(t *testing.T, p *Proxy, headers map[string]string) *openStream {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	r, err := http.NewRequestWithContext(ctx, "GET", p.address("/sse"), nil)
	require.NoError(t, err)
	r.Header.Set("Authorization", "Bearer "+p.token)
	for name, value := range headers {
		r.Header.Set(name, value)
	}
	response, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	t.Cleanup(func() { cancel(); _ = response.Body.Close() })
	require.Equal(t, http.StatusOK, response.StatusCode)
	assert.Equal(t, "text/event-stream", response.Header.Get("Content-Type"))
	assert.Equal(t, "no-cache, no-transform", response.Header.Get("Cache-Control"))
	s := &openStream{t: t, body: bufio.NewReader(response.Body), close: func() { cancel(); _ = response.Body.Close() }}
	name, data := s.event()
	assert.Equal(t, "endpoint", name)
	assert.Regexp(t, `^/message\?sessionId=[A-Z2-7]{26}$`, data)
	s.endpoint = data
	return s
}

// line is the next line of the stream, without its newline.
func (s *openStream) line() string {
	s.t.Helper()
	line, err := s.body.ReadString('\n')
	require.NoError(s.t, err)
	return strings.TrimSuffix(line, "\n")
}

// event is the next event; comments are skipped.
func (s *openStream) event() (name, data string) {
	s.t.Helper()
	for {
		switch line := s.line(); {
		case strings.HasPrefix(line, "event: "):
			name = strings.TrimPrefix(line, "event: ")
		case strings.HasPrefix(line, "data: "):
			data = strings.TrimPrefix(line, "data: ")
		case line == "" && name != "":
			return name, data
		}
	}
}

// until waits for something that another goroutine is about to do.
func until(t *testing.T, what string, done func() bool) {
	t.Helper()
	require.Eventually(t, done, time.Minute, time.Millisecond, what)
}

const listTools = `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`

func TestAPostNeedsAStream(t *testing.T) {
	p, logged := start(t, Options{})
	for _, path := range []string{"/message", "/message?sessionId=", "/message?sessionId=unknown"} {
		status, said := send(t, p, "POST", path, initialize, nil)
		assert.Equal(t, http.StatusNotFound, status)
		assert.Equal(t, "No SSE connection has this sessionId: open GET /sse first, and post to the endpoint that it names\n", said)
	}
	assert.Contains(t, logged.text(), "mcp-proxy: POST /message without an SSE connection")
}

func TestAPostOnADeadStream(t *testing.T) {
	p, logged := start(t, Options{})
	first := open(t, p, nil)
	first.close()
	until(t, "the stream's end", func() bool { return strings.Contains(logged.text(), "SSE connection closed") })
	for range 3 {
		status, said := send(t, p, "POST", first.endpoint, initialize, nil)
		assert.Equal(t, http.StatusNotFound, status)
		assert.Regexp(t, `^The SSE connection of this sessionId closed \d+ ms ago: open GET /sse again\n$`, said)
	}
	assert.Regexp(t, `mcp-proxy: SSE connection closed after \d+ms \(0 tool calls proxied\)`, logged.text())
	assert.Regexp(t, `mcp-proxy: POST /message on dead SSE connection \(closed \d+ms ago, after 0 calls\)`, logged.text())

	second := open(t, p, nil)
	assert.NotEqual(t, first.endpoint, second.endpoint)
	status, _ := send(t, p, "POST", second.endpoint, initialize, nil)
	assert.Equal(t, http.StatusAccepted, status)
	name, data := second.event()
	assert.Equal(t, "message", name)
	assert.Contains(t, data, ServerName)
}

// Streams beside each other have sessions of their own.
func TestTwoStreams(t *testing.T) {
	p, _ := start(t, Options{})
	one, two := open(t, p, nil), open(t, p, nil)
	for _, stream := range []*openStream{two, one} {
		status, _ := send(t, p, "POST", stream.endpoint, initialize, nil)
		assert.Equal(t, http.StatusAccepted, status)
		_, data := stream.event()
		assert.Contains(t, data, ServerName)
	}
	until(t, "both to be counted", func() bool { return p.Stats().Open == 2 })
}

// Claude Code opens a new stream for a lost one and goes on without initializing.
func TestALostStreamIsResumed(t *testing.T) {
	p, _ := start(t, Options{})
	fresh := open(t, p, map[string]string{"Mcp-Protocol-Version": "of no kit"})
	_, _ = send(t, p, "POST", fresh.endpoint, listTools, nil)
	_, data := fresh.event()
	assert.Contains(t, data, "invalid during session initialization")

	resumed := open(t, p, map[string]string{"Mcp-Protocol-Version": "2025-11-25"})
	status, _ := send(t, p, "POST", resumed.endpoint, listTools, nil)
	assert.Equal(t, http.StatusAccepted, status)
	_, data = resumed.event()
	assert.Contains(t, data, `"name":"echo"`)
}

func TestAStreamIsKeptAlive(t *testing.T) {
	p, _ := start(t, Options{KeepAlive: time.Millisecond})
	stream := open(t, p, nil)
	assert.Equal(t, ":keepalive", stream.line())
	assert.Equal(t, "", stream.line())
	_, _ = send(t, p, "POST", stream.endpoint, initialize, nil)
	_, data := stream.event()
	assert.Contains(t, data, ServerName)
}

// descriptors is how many files this process has open, or 0 where that cannot be told.
func descriptors() int {
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 0
	}
	return len(list)
}

func TestReconnectsLeaveNothing(t *testing.T) {
	p, _ := start(t, Options{})
	var goroutines, files int
	settled := func() bool { return p.Stats().Open == 0 }
	for i := range 300 {
		if i == 20 {
			until(t, "the first streams' end", settled)
			goroutines, files = runtime.NumGoroutine(), descriptors()
		}
		stream := open(t, p, nil)
		_, _ = send(t, p, "POST", stream.endpoint, initialize, nil)
		_, _ = stream.event()
		stream.close()
	}
	until(t, "the streams' end", settled)
	until(t, "no more goroutines than before", func() bool { return runtime.NumGoroutine() <= goroutines+5 })
	until(t, "no more open files than before", func() bool { return descriptors() <= files+5 })
	assert.LessOrEqual(t, len(p.streams.gone), maxGone)
	assert.Empty(t, p.streams.live)
}
