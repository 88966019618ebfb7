package proxy

import (
	"context"
	"encoding/json"
	"fmt"
	"heartbeat/internal/hosting/config"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
)

// echo answers with the tool's name and its arguments.
func echo(_ context.Context, tool config.Tool, args json.RawMessage) (string, error) {
	return tool.Name + " " + string(args), nil
}

// lines collects what a proxy logs.
type lines struct {
	mu  sync.Mutex
	all []string
}

func (l *lines) add(line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, line)
}

func (l *lines) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.all, "\n")
}

// start runs a proxy for one test. Without tools it gets one named "echo".
func start(t *testing.T, options Options) (*Proxy, *lines) {
	t.Helper()
	logged := &lines{}
	if options.Call == nil {
		options.Call = echo
	}
	if options.Tools == nil {
		options.Tools = []config.Tool{{Name: "echo", Method: "POST", Description: "says it again"}}
	}
	options.Log = logged.add
	p, err := Start(options)
	require.NoError(t, err)
	t.Cleanup(p.Close)
	return p, logged
}

// bearer adds the token to every request.
type bearer struct{ token string }

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+b.token)
	return http.DefaultTransport.RoundTrip(r)
}

// transport is the way to a proxy.
func transport(p *Proxy) mcp.Transport {
	return &mcp.StreamableClientTransport{Endpoint: p.URL(), HTTPClient: &http.Client{Transport: bearer{p.token}}}
}

// connect begins a session over one transport.
func connect(t *testing.T, transport mcp.Transport) *mcp.ClientSession {
	t.Helper()
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	session, err := client.Connect(context.Background(), transport, nil)
	require.NoError(t, err)
	t.Cleanup(func() { _ = session.Close() })
	return session
}

// text is what a tool answered.
func text(t *testing.T, result *mcp.CallToolResult) string {
	t.Helper()
	require.Len(t, result.Content, 1)
	content, ok := result.Content[0].(*mcp.TextContent)
	require.True(t, ok)
	return content.Text
}

// posted posts a message in a session on /mcp, and returns the message that answers it.
func posted(t *testing.T, p *Proxy, message string) string {
	t.Helper()
	session := initialized(t, p)
	status, said := send(t, p, "POST", "/mcp", message, func(r *http.Request) { r.Header.Set("Mcp-Session-Id", session) })
	require.Equal(t, http.StatusOK, status, said)
	_, data, _ := strings.Cut(said, "data: ")
	return data
}

// open is how many requests are in progress.
func open(p *Proxy) int {
	n := 0
	p.answers.Range(func(any, any) bool { n++; return true })
	return n
}

// until waits for something that another goroutine is about to do.
func until(t *testing.T, what string, done func() bool) {
	t.Helper()
	require.Eventually(t, done, 5*time.Minute, time.Millisecond, what)
}

const listTools = `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`

// descriptors is how many files this process has open, or 0 where that cannot be told.
func descriptors() int {
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 0
	}
	return len(list)
}

// address is that of a path.
func (p *Proxy) address(path string) string {
	return fmt.Sprintf("http://127.0.0.1:%d%s", p.port, path)
}
