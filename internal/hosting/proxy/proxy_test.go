package proxy

import (
	"context"
	"encoding/json"
	"fmt"
	"heartbeat/internal/hosting/config"
	"net"
	"net/http"
	"os"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestListAndCall(t *testing.T) {
	p, logged := start(t, Options{Tools: []config.Tool{
		{Name: "writ-list", Description: "lists", Params: json.RawMessage(`{"properties":{"n":{"type":"number","maximum":12345678901234567890}},"required":["n"]}`), Method: "GET"},
		{Name: "signal"},
	}})
	assert.False(t, p.Stats().Listed)
	session := connect(t, transport(p))
	list, err := session.ListTools(context.Background(), nil)
	require.NoError(t, err)
	require.Len(t, list.Tools, 2)
	assert.Equal(t, []string{"writ-list", "signal"}, []string{list.Tools[0].Name, list.Tools[1].Name})
	assert.True(t, p.Stats().Listed)
	result, err := session.CallTool(context.Background(), &mcp.CallToolParams{
		Name: "writ-list", Arguments: json.RawMessage(`{"n":12345678901234567890}`)})
	require.NoError(t, err)
	assert.False(t, result.IsError)
	assert.Equal(t, `writ-list {"n":12345678901234567890}`, text(t, result))
	assert.Regexp(t, `mcp-proxy: writ-list → GET /api/writ/list \(\d+ms, call #1\)`, logged.text())
	assert.EqualValues(t, 1, p.Stats().Calls)
}

// The list has one page, however long it is: a client that asked for more would get every tool again.
func TestALongList(t *testing.T) {
	var tools []config.Tool
	for i := range 2500 {
		tools = append(tools, config.Tool{Name: fmt.Sprint("t-", i)})
	}
	p, _ := start(t, Options{Tools: tools})
	session, n := connect(t, transport(p)), 0
	for _, err := range session.Tools(t.Context(), nil) {
		require.NoError(t, err)
		n++
	}
	assert.Equal(t, len(tools), n)
}

func TestTheConfig(t *testing.T) {
	p, logged := start(t, Options{})
	assert.JSONEq(t, fmt.Sprintf(`{"mcpServers":{"nexus-guild":{"type":"http","url":"http://127.0.0.1:%d/mcp",`+
		`"headers":{"Authorization":"Bearer %s"},"alwaysLoad":true}}}`, p.port, p.token), string(p.Config()))
	assert.NotContains(t, string(p.Config()), "\n")
	other, _ := start(t, Options{})
	assert.NotEqual(t, p.token, other.token)
	assert.Equal(t, fmt.Sprintf("MCP proxy server listening on port %d", p.port), logged.text())
}

func TestNoPort(t *testing.T) {
	for _, cause := range []error{syscall.EADDRINUSE, syscall.EMFILE, syscall.EACCES} {
		_, err := Start(Options{listen: func() (net.Listener, error) {
			return nil, &net.OpError{Op: "listen", Net: "tcp4", Err: os.NewSyscallError("bind", cause)}
		}})
		require.ErrorIs(t, err, cause)
		assert.Equal(t, "no port of 127.0.0.1 could be opened: listen tcp4: bind: "+cause.Error(), err.Error())
	}
}

func TestAClientThatNeverAsked(t *testing.T) {
	p, logged := start(t, Options{Tools: []config.Tool{{Name: "a"}, {Name: "b"}}})
	want := "the client never asked for the list of tools: none of the 2 configured tools was available to it"
	assert.Equal(t, want, Warning(p.Stats()))
	p.Close()
	assert.Contains(t, logged.text(), "mcp-proxy: WARNING: "+want)

	none, logged := start(t, Options{Tools: []config.Tool{}})
	assert.Empty(t, Warning(none.Stats()))
	none.Close()
	assert.NotContains(t, logged.text(), "WARNING")
}

// Close ends what is in progress, even a call that does not heed its context and a
// client that has stopped reading.
func TestCloseNeverHangs(t *testing.T) {
	begun, release := make(chan struct{}, 8), make(chan struct{})
	defer close(release)
	large := strings.Repeat("x", 16<<20)
	p, _ := start(t, Options{Tools: []config.Tool{{Name: "echo"}, {Name: "large"}}, Call: func(_ context.Context, tool config.Tool, _ json.RawMessage) (string, error) {
		begun <- struct{}{}
		if tool.Name == "large" {
			return large, nil
		}
		<-release
		return "", nil
	}})
	beginTool(t, p, "2025-06-18", "large")
	begin(t, p, "2025-06-18")
	old, alone := begin(t, p, "2025-06-18"), begin(t, p, sessionless)
	for range 4 {
		<-begun
	}
	until(t, "the large result to fill the connection", func() bool { return p.Stats().Open == 3 })
	p.Close()
	p.Close()
	<-old.response
	<-alone.response
	_, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", p.port))
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
	assert.Empty(t, slices.Collect(p.mcp.Sessions()))
	assert.Zero(t, open(p))
	assert.Zero(t, p.Stats().Open)
}

func TestProxiesLeaveNothing(t *testing.T) {
	var goroutines, files int
	for i := range 60 {
		if i == 5 {
			goroutines, files = runtime.NumGoroutine(), descriptors()
		}
		p, err := Start(Options{Tools: []config.Tool{{Name: "echo"}}, Call: echo})
		require.NoError(t, err)
		initialized(t, p)
		p.Close()
		http.DefaultClient.CloseIdleConnections()
	}
	until(t, "no more goroutines than before", func() bool { return runtime.NumGoroutine() <= goroutines+5 })
	until(t, "no more open files than before", func() bool { return descriptors() <= files+5 })
}
