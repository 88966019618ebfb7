package config_test

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/hosting/config"
	"heartbeat/internal/hosting/folder"
)

// FuzzParse: whatever is given is either a problem in one sentence, or a config that
// holds what it promises and reads the same once it is written out.
func FuzzParse(f *testing.F) {
	f.Add([]byte(whole))
	f.Add([]byte(strings.Replace(whole, "/guild/.nexus", "rel", 1)))
	f.Add([]byte(strings.Replace(whole, "GET", "get", 1)))
	f.Add([]byte("{"))
	f.Fuzz(func(t *testing.T, given []byte) {
		c, err := config.Parse(given)
		require.NotNil(t, c)
		if c.SessionID != "" {
			require.NoError(t, folder.CheckID(c.SessionID))
		}
		for _, path := range []string{c.DBPath, c.LogDir, c.Cwd, c.SystemPromptTmpDir} {
			require.True(t, path == "" || filepath.IsAbs(path) && filepath.Clean(path) == path)
		}
		if err != nil {
			p := problem(t, err)
			require.NotEmpty(t, p.Reason)
			return
		}
		again, err := config.Parse(written(t, c))
		require.NoError(t, err)
		assert.Equal(t, c, again)
	})
}

// written is a config as JSON.
func written(t *testing.T, c *config.Config) []byte {
	t.Helper()
	m := map[string]any{}
	for name, value := range c.Extra {
		m[name] = value
	}
	tools := []any{}
	for _, tool := range c.Tools {
		tools = append(tools, map[string]any{"name": tool.Name, "description": tool.Description, "params": tool.Params, "method": tool.Method, "idempotent": tool.Idempotent})
	}
	for name, value := range map[string]any{
		"sessionId": c.SessionID, "guildToolUrl": c.GuildToolURL, "dbPath": c.DBPath, "logDir": c.LogDir, "cwd": c.Cwd,
		"env": c.Env, "prompt": c.Prompt, "tools": tools, "requireTools": c.RequireTools, "startedAt": c.StartedAt, "provider": c.Provider,
		"systemPromptTmpDir": c.SystemPromptTmpDir, "claudeArgs": append([]string{}, c.ClaudeArgs...),
	} {
		m[name] = value
	}
	if c.Metadata != nil {
		m["metadata"] = c.Metadata
	}
	b, err := json.Marshal(m)
	require.NoError(t, err)
	// The raw values come back with the spelling that Marshal gave them.
	for _, raw := range []*json.RawMessage{&c.Metadata} {
		*raw = respelled(t, *raw)
	}
	for i := range c.Tools {
		c.Tools[i].Params = respelled(t, c.Tools[i].Params)
	}
	for name, value := range c.Extra {
		c.Extra[name] = respelled(t, value)
	}
	return b
}

func respelled(t *testing.T, raw json.RawMessage) json.RawMessage {
	t.Helper()
	if raw == nil {
		return nil
	}
	b, err := json.Marshal(raw)
	require.NoError(t, err)
	return b
}
