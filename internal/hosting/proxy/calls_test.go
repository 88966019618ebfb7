package proxy

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"heartbeat/internal/hosting/config"
	"heartbeat/internal/hosting/folder"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// hanging is a Call that ends with its context only, and says when it began and ended.
type hanging struct{ begun, ended chan struct{} }

func newHanging() *hanging { return &hanging{make(chan struct{}), make(chan struct{})} }

func (h *hanging) call(ctx context.Context, _ config.Tool, _ json.RawMessage) (string, error) {
	close(h.begun)
	<-ctx.Done()
	close(h.ended)
	return "", ctx.Err()
}

func TestArgumentsAreRaw(t *testing.T) {
	p, _ := start(t, Options{})
	for given, want := range map[string]string{
		`,"arguments":{"n":12345678901234567890,"n":1e400,"s":"<\u00e9é>"}`: `echo {"n":12345678901234567890,"n":1e400,"s":"<\u00e9é>"}`,
		`,"arguments":{ "a" : 1 }`: `echo { "a" : 1 }`,
		`,"arguments":{}`:          `echo {}`,
		`,"arguments":null`:        `echo {}`,
		``:                         `echo {}`,
		`,"arguments":[1]`:         `Error: the arguments are not a JSON object`,
		`,"arguments":"x"`:         `Error: the arguments are not a JSON object`,
	} {
		data := posted(t, p, `{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"echo"`+given+`}}`)
		var message struct {
			Result struct{ Content []struct{ Text string } }
		}
		require.NoError(t, json.Unmarshal([]byte(data), &message))
		require.Len(t, message.Result.Content, 1)
		assert.Equal(t, want, message.Result.Content[0].Text)
	}
}

func TestAnErrorIsAResult(t *testing.T) {
	p, logged := start(t, Options{
		Tools: []config.Tool{{Name: "fails"}, {Name: "panics"}, {Name: "works"}},
		Call: func(_ context.Context, tool config.Tool, _ json.RawMessage) (string, error) {
			switch tool.Name {
			case "fails":
				return "", errors.New("HTTP 500:\nno")
			case "panics":
				panic("at the tool")
			}
			return "fine", nil
		}})
	session := connect(t, transport(p))
	for tool, want := range map[string]string{
		"fails":        "Error: HTTP 500:\nno",
		"panics":       "Error: the call failed inside the session's host: at the tool",
		"unknown":      `Error: there is no tool "unknown" in this session`,
		"works\u202eb": `Error: there is no tool "works\u202eb" in this session`,
	} {
		result, err := session.CallTool(context.Background(), &mcp.CallToolParams{Name: tool})
		require.NoError(t, err, tool)
		assert.True(t, result.IsError, tool)
		assert.Equal(t, want, text(t, result))
	}
	result, err := session.CallTool(context.Background(), &mcp.CallToolParams{Name: "works"})
	require.NoError(t, err)
	assert.Equal(t, "fine", text(t, result))
	assert.Regexp(t, `mcp-proxy: fails FAILED \(\d+ms, call #\d\): HTTP 500:; no`, logged.text())
	for _, line := range strings.Split(logged.text(), "\n") {
		assert.Regexp(t, `^(mcp-proxy: |MCP proxy server )`, line)
	}
	stats := p.Stats()
	assert.Equal(t, []int64{5, 4, 0}, []int64{stats.Calls, stats.Failed, stats.Open})
	assert.NotNil(t, stats.LastAt)
	assert.Contains(t, stats.Each, folder.ToolUse{Name: "works", Calls: 1})
	assert.Regexp(t, "^[a-z() ]+: .", stats.LastError)
	failed := int64(0)
	for _, of := range stats.Each {
		failed += of.Failed
	}
	assert.Equal(t, stats.Failed, failed)
}

func TestAClientCancels(t *testing.T) {
	h := newHanging()
	p, _ := start(t, Options{Call: h.call})
	session := connect(t, transport(p))
	ctx, cancel := context.WithCancel(context.Background())
	go func() { <-h.begun; cancel() }()
	_, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "echo"})
	require.ErrorIs(t, err, context.Canceled)
	<-h.ended
	until(t, "the call's end", func() bool { return p.Stats().Open == 0 })
}

const (
	callEcho = `{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"echo"}}`
	// callEchoAlone is the same since sessionless.
	callEchoAlone = `{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"echo","_meta":{` +
		`"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},` +
		`"io.modelcontextprotocol/clientCapabilities":{}}}}`
)

// begin calls the tool "echo" on /mcp in a version of the protocol. The answer may be
// read as it comes; close loses the connection.
func begin(t *testing.T, p *Proxy, version string) *pending { return beginTool(t, p, version, "echo") }

func beginTool(t *testing.T, p *Proxy, version, tool string) *pending {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	body := callEcho
	headers := map[string]string{"Mcp-Protocol-Version": version}
	if version < sessionless {
		headers["Mcp-Session-Id"] = initialized(t, p)
	} else {
		body = callEchoAlone
		headers["Mcp-Method"], headers["Mcp-Name"] = "tools/call", "echo"
	}
	one := &pending{close: cancel, response: make(chan *http.Response, 1)}
	r := request(t, p, "POST", "/mcp", strings.Replace(body, "echo", tool, 1)).WithContext(ctx)
	for name, value := range headers {
		r.Header.Set(name, value)
	}
	go func() {
		defer close(one.response)
		if response, err := http.DefaultClient.Do(r); err == nil {
			one.response <- response
		}
	}()
	return one
}

// pending is a call whose answer has perhaps not begun.
type pending struct {
	close    context.CancelFunc
	response chan *http.Response // closed without one when the connection was lost
}

// initialized begins a session on /mcp and returns its id.
func initialized(t *testing.T, p *Proxy) string {
	t.Helper()
	response, err := http.DefaultClient.Do(request(t, p, "POST", "/mcp", initialize))
	require.NoError(t, err)
	defer response.Body.Close()
	_, err = io.Copy(io.Discard, response.Body)
	require.NoError(t, err)
	require.NotEmpty(t, response.Header.Get("Mcp-Session-Id"))
	return response.Header.Get("Mcp-Session-Id")
}

// A call whose answer can reach nobody is given up.
func TestALostConnectionEndsTheCall(t *testing.T) {
	for _, version := range []string{"2025-06-18", sessionless} {
		t.Run("version "+version, func(t *testing.T) {
			h := newHanging()
			p, logged := start(t, Options{Call: h.call})
			lost := begin(t, p, version)
			<-h.begun
			lost.close()
			<-h.ended
			until(t, "the log", func() bool {
				return strings.Contains(logged.text(), "call #1): the client canceled the call or lost its connection")
			})
			until(t, "the request's end", func() bool { return open(p) == 0 })
		})
	}
}

// An answer begins before its result: clients wait a minute for that.
func TestALongCallIsKeptAlive(t *testing.T) {
	for _, version := range []string{"2025-06-18", sessionless} {
		t.Run(version, func(t *testing.T) {
			release := make(chan struct{})
			p, _ := start(t, Options{KeepAlive: time.Millisecond, Call: func(context.Context, config.Tool, json.RawMessage) (string, error) {
				<-release
				return "fine", nil
			}})
			response := <-begin(t, p, version).response
			require.NotNil(t, response)
			defer response.Body.Close()
			assert.Equal(t, "text/event-stream", response.Header.Get("Content-Type"))
			body := bufio.NewReader(response.Body)
			for range 3 {
				line, err := body.ReadString('\n')
				require.NoError(t, err)
				assert.Equal(t, ":keepalive\n", line)
				line, err = body.ReadString('\n')
				require.NoError(t, err)
				assert.Equal(t, "\n", line)
			}
			close(release)
			rest, err := io.ReadAll(body)
			require.NoError(t, err)
			assert.Contains(t, string(rest), `"text":"fine"`)
		})
	}
}

// A result that is much larger than a request may be passes whole.
func TestALargeResult(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a minute under the race detector")
	}
	large := strings.Repeat("ä\n\"x", 10<<20) // 50 MiB
	p, _ := start(t, Options{Call: func(context.Context, config.Tool, json.RawMessage) (string, error) { return large, nil }})
	result := func(data string) string {
		var message struct {
			Result struct{ Content []struct{ Text string } }
		}
		require.NoError(t, json.Unmarshal([]byte(data), &message))
		require.Len(t, message.Result.Content, 1)
		return message.Result.Content[0].Text
	}
	assert.True(t, result(posted(t, p, callEcho)) == large)
	assert.EqualValues(t, 1, p.Stats().Failed, "the client drops it")
	assert.Equal(t, "echo: the answer has 50 MiB, and the client reads none over 16", p.Stats().LastError)
	response := <-begin(t, p, sessionless).response
	require.NotNil(t, response)
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	_, data, _ := strings.Cut(string(raw), "data: ")
	assert.True(t, result(data) == large)
}
