package proxy

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
)

// echo answers with the tool's name and its arguments.
func echo(_ context.Context, name string, args json.RawMessage) (string, error) {
	return name + " " + string(args), nil
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
		options.Tools = []Tool{{Name: "echo", Description: "says it again", Target: "POST /api/echo"}}
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

// transports are the two ways to a proxy.
func transports(p *Proxy) map[string]mcp.Transport {
	client := &http.Client{Transport: bearer{p.token}}
	return map[string]mcp.Transport{
		"sse":        &mcp.SSEClientTransport{Endpoint: p.address("/sse"), HTTPClient: client, MaxEventSize: -1},
		"streamable": &mcp.StreamableClientTransport{Endpoint: p.URL(), HTTPClient: client},
	}
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
