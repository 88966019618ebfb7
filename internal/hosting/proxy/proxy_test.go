package proxy

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestListAndCall(t *testing.T) {
	for _, name := range []string{"sse", "streamable"} {
		t.Run(name, func(t *testing.T) {
			p, logged := start(t, Options{Tools: []Tool{
				{Name: "writ-list", Description: "lists", Params: json.RawMessage(`{"properties":{"n":{"type":"number","maximum":12345678901234567890}},"required":["n"]}`), Target: "GET /api/writ/list"},
				{Name: "signal"},
			}})
			assert.False(t, p.Stats().Listed)
			session := connect(t, transports(p)[name])
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
			assert.Equal(t, 1, p.Stats().Calls)
		})
	}
}

func TestAnErrorIsAResult(t *testing.T) {
	for _, name := range []string{"sse", "streamable"} {
		t.Run(name, func(t *testing.T) {
			p, logged := start(t, Options{
				Tools: []Tool{{Name: "fails"}, {Name: "panics"}, {Name: "works"}},
				Call: func(_ context.Context, name string, _ json.RawMessage) (string, error) {
					switch name {
					case "fails":
						return "", errors.New("HTTP 500: no")
					case "panics":
						panic("at the tool")
					}
					return "fine", nil
				}})
			session := connect(t, transports(p)[name])
			for tool, want := range map[string]string{
				"fails":   "Error: HTTP 500: no",
				"panics":  "Error: the call failed inside the session's host: at the tool",
				"unknown": `Error: there is no tool "unknown" in this session`,
			} {
				result, err := session.CallTool(context.Background(), &mcp.CallToolParams{Name: tool})
				require.NoError(t, err, tool)
				assert.True(t, result.IsError, tool)
				assert.Equal(t, want, text(t, result))
			}
			result, err := session.CallTool(context.Background(), &mcp.CallToolParams{Name: "works"})
			require.NoError(t, err)
			assert.Equal(t, "fine", text(t, result))
			assert.Regexp(t, `mcp-proxy: fails FAILED \(\d+ms, call #\d\): HTTP 500: no`, logged.text())
			assert.Equal(t, 3, p.Stats().Failed)
		})
	}
}
