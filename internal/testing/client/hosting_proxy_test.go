package client

import (
	"context"
	"encoding/json"
	"errors"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/hosting/config"
	"heartbeat/internal/hosting/proxy"
	"heartbeat/internal/testing/model"
)

// proxied runs the client on one prompt with the tools of a proxy. Between the two
// stands a relay that can cut every connection.
type proxied struct {
	*Workspace
	proxy  *proxy.Proxy
	relay  *httptest.Server
	config string // the mcp-config's path
}

func newProxied(t *testing.T, script model.Script, call func(ctx context.Context, tool config.Tool, args json.RawMessage) (string, error)) *proxied {
	t.Helper()
	p, err := proxy.Start(proxy.Options{
		Tools: []config.Tool{{Name: "writ-list", Method: "GET", Description: "lists the writs",
			Params: json.RawMessage(`{"properties":{"status":{"type":"string"}},"required":["status"]}`)}},
		Call: call, Log: func(line string) { t.Log(line) },
	})
	require.NoError(t, err)
	t.Cleanup(p.Close)
	target, err := url.Parse(p.URL())
	require.NoError(t, err)
	target.Path = ""
	relay := httptest.NewServer(&httputil.ReverseProxy{FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }})
	t.Cleanup(func() { relay.CloseClientConnections(); relay.Close() })
	one := &proxied{Workspace: workspace(t, Find(t), script), proxy: p, relay: relay}
	text := strings.ReplaceAll(string(p.Config()), target.String(), relay.URL)
	one.config = filepath.Join(filepath.Dir(one.Home), "mcp-config.json")
	require.NoError(t, os.WriteFile(one.config, []byte(text), 0o600))
	return one
}

func (p *proxied) run(t *testing.T) Result {
	t.Helper()
	result, err := p.Print("begin", Options{Args: []string{
		"--allowedTools", "mcp__nexus-guild", "--mcp-config", p.config, "--strict-mcp-config",
		"--output-format", "stream-json", "--verbose",
	}}).Wait(within(t))
	require.NoError(t, err)
	return result
}

const writList = "mcp__nexus-guild__writ-list"

// calls asks for a tool n times and then ends.
func calls(n int) model.Script {
	return func(r model.Request) model.Reply {
		if r.Number <= n {
			return model.Tool(writList, map[string]any{"status": "open"})
		}
		return model.Text("done: " + strings.Join(r.ToolResults, "|"))
	}
}

func TestProxyServesTheClient(t *testing.T) {
	var n atomic.Int64
	p := newProxied(t, calls(2), func(_ context.Context, tool config.Tool, args json.RawMessage) (string, error) {
		if n.Add(1) == 2 {
			return "", errors.New("HTTP 503: not now")
		}
		return tool.Name + string(args), nil
	})
	result := p.run(t)
	assert.Zero(t, result.ExitCode, result.Stderr)
	mains := p.Model.MainRequests()
	require.Len(t, mains, 3)
	assert.Equal(t, []string{`writ-list{"status":"open"}`}, mains[1].ToolResults)
	require.Len(t, mains[2].ToolResults, 1)
	assert.Contains(t, mains[2].ToolResults[0], "HTTP 503: not now")
	assert.True(t, p.proxy.Stats().Listed)
	assert.Contains(t, string(mains[0].Body), `"name":"`+writList+`","description":"lists the writs"`,
		"the model has the tool's schema and need not search for it")
}

// The connection is cut before each call, and no call is lost by that.
func TestProxyTakesTheClientBack(t *testing.T) {
	var p *proxied
	p = newProxied(t, func(r model.Request) model.Reply {
		p.relay.CloseClientConnections()
		return calls(5)(r)
	}, listed)
	result := p.run(t)
	assert.Zero(t, result.ExitCode, result.Stderr)
	mains := p.Model.MainRequests()
	require.Len(t, mains, 6)
	for _, main := range mains[1:] {
		assert.Equal(t, []string{"listed"}, main.ToolResults)
	}
}

func listed(context.Context, config.Tool, json.RawMessage) (string, error) { return "listed", nil }
