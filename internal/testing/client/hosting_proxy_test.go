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

	"heartbeat/internal/hosting/proxy"
	"heartbeat/internal/testing/model"
)

// proxied runs the client on one prompt with the tools of a proxy. Between the two
// stands a relay that can cut every connection.
type proxied struct {
	*Workspace
	proxy   *proxy.Proxy
	relay   *httptest.Server
	config  string        // the mcp-config's path
	streams chan struct{} // receives when a stream of /sse begins
}

// newProxied names one of the proxy's transports, "sse" or "mcp", to the client.
func newProxied(t *testing.T, transport string, script model.Script, call func(ctx context.Context, name string, args json.RawMessage) (string, error)) *proxied {
	t.Helper()
	streams := make(chan struct{}, 100)
	p, err := proxy.Start(proxy.Options{
		Tools: []proxy.Tool{{Name: "writ-list", Description: "lists the writs",
			Params: json.RawMessage(`{"properties":{"status":{"type":"string"}},"required":["status"]}`)}},
		Call: call, Log: func(line string) {
			t.Log(line)
			if strings.HasSuffix(line, "SSE connection established") {
				streams <- struct{}{}
			}
		},
	})
	require.NoError(t, err)
	t.Cleanup(p.Close)
	target, err := url.Parse(p.URL())
	require.NoError(t, err)
	target.Path = ""
	relay := httptest.NewServer(&httputil.ReverseProxy{FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }})
	t.Cleanup(func() { relay.CloseClientConnections(); relay.Close() })
	one := &proxied{Workspace: workspace(t, Find(t), script), proxy: p, relay: relay, streams: streams}
	config := strings.ReplaceAll(string(p.Config()), target.String(), relay.URL)
	if transport == "sse" {
		config = strings.NewReplacer(`"http"`, `"sse"`, "/mcp", "/sse").Replace(config)
	}
	one.config = filepath.Join(filepath.Dir(one.Home), "mcp-config.json")
	require.NoError(t, os.WriteFile(one.config, []byte(config), 0o600))
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

var bothTransports = []string{"sse", "mcp"}

func TestProxyServesTheClient(t *testing.T) {
	for _, transport := range bothTransports {
		t.Run(transport, func(t *testing.T) {
			var n atomic.Int64
			p := newProxied(t, transport, calls(2), func(_ context.Context, name string, args json.RawMessage) (string, error) {
				if n.Add(1) == 2 {
					return "", errors.New("HTTP 503: not now")
				}
				return name + string(args), nil
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
		})
	}
}

// The connection is cut before each call, and no call is lost by that.
func TestProxyTakesTheClientBack(t *testing.T) {
	var p *proxied
	p = newProxied(t, "mcp", func(r model.Request) model.Reply {
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

// On /sse the client opens a new stream by itself. It calls the old one until it has
// read the first event of the new one, and each such call fails, but none later does.
func TestProxyTakesAStreamBack(t *testing.T) {
	var p *proxied
	p = newProxied(t, "sse", func(r model.Request) model.Reply {
		if r.Number == 2 {
			p.relay.CloseClientConnections()
		}
		if r.Number <= 2 {
			select {
			case <-p.streams:
			case <-t.Context().Done():
			}
		}
		if r.Number > 2 && strings.Join(r.ToolResults, "") == "listed" {
			return model.Text("done")
		}
		return model.Tool(writList, map[string]any{"status": "open"})
	}, listed)
	result := p.run(t)
	assert.Zero(t, result.ExitCode, result.Stderr)
	assert.Contains(t, result.Stdout, `"result":"done"`)
}

func listed(context.Context, string, json.RawMessage) (string, error) { return "listed", nil }
