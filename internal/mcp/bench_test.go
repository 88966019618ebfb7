package mcp

import (
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"heartbeat/inbox"
)

// BenchmarkEnqueue sends an entry by the tool over stdio and by the library's call, each
// to an inbox of its own.
func BenchmarkEnqueue(b *testing.B) {
	b.Run("tool", func(b *testing.B) {
		server := exec.Command("heartbeat", "mcp", "--inbox", filepath.Join(b.TempDir(), "inbox.jsonl"), "--role", "producer")
		c, err := sdk.NewClient(&sdk.Implementation{Name: "test"}, nil).Connect(b.Context(), &sdk.CommandTransport{Command: server}, nil)
		require.NoError(b, err)
		for b.Loop() {
			answer, err := c.CallTool(b.Context(), &sdk.CallToolParams{Name: "enqueue", Arguments: map[string]any{"prompt": "an entry"}})
			require.NoError(b, err)
			require.False(b, answer.IsError)
		}
		require.NoError(b, c.Close())
	})
	b.Run("call", func(b *testing.B) {
		box, err := inbox.Open(filepath.Join(b.TempDir(), "inbox.jsonl"), inbox.Options{})
		require.NoError(b, err)
		for b.Loop() {
			_, err := box.Append(b.Context(), inbox.Message{Text: "an entry"}, time.Second)
			require.NoError(b, err)
		}
	})
}
