package settings_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/claude/settings"
)

func server() settings.Server {
	return settings.Server{Name: "heartbeat", Command: "/opt/heartbeat-mcp", Args: []string{"--inbox", inbox, "--role", "agent"}}
}

// The .mcp.json comes back as it was, and a server of another release is replaced.
func TestServerRoundTrip(t *testing.T) {
	moved := server()
	moved.Command, moved.Args = "/moved/heartbeat", []string{"mcp", "--inbox=" + inbox}
	for _, x := range []string{"", "{}", `{"mcpServers": {}}`, `{"mcpServers":{"files":{"command":"x"}},}`, "{\n\t\"mcpServers\": { // all\n\t\t\"files\": {}\n\t}\n}\n"} {
		p := owns(t, x, true)
		for _, s := range []settings.Server{server(), moved, server()} {
			for _, want := range []bool{true, false} {
				changed, err := s.File(p.path, settings.RefuseLinks, true).Write()
				require.NoError(t, err)
				assert.Equal(t, want, changed)
			}
			assert.Contains(t, p.text(), s.Command)
		}
		_, err := moved.File(p.path, settings.RefuseLinks, false).Write()
		require.NoError(t, err)
		p.has(x, true, "")
	}
}

// Another server of the same name is left alone, and named.
func TestServerOfSomebodyElse(t *testing.T) {
	for _, text := range []string{
		`{"mcpServers":{"heartbeat":{"command":"/usr/bin/other","args":["--inbox","` + inbox + `"]}}}`,
		`{"mcpServers":{"heartbeat":{"command":"/opt/heartbeat-mcp","args":["--inbox","/another.jsonl"]}}}`,
		`{"mcpServers":{"heartbeat":{"type":"http","url":"http://localhost"}}}`,
		`{"mcpServers":{"heartbeat":7}}`,
	} {
		p := owns(t, text, true)
		_, err := server().File(p.path, settings.RefuseLinks, true).Write()
		require.ErrorContains(t, err, "mcpServers.heartbeat at line 1 is another server")
		_, err = server().File(p.path, settings.RefuseLinks, false).Write()
		require.NoError(t, err)
		p.has(text, true, "")
	}
	for text, want := range map[string]string{`{"mcpServers":[]}`: "mcpServers at line 1", `{"mcpServers"`: "not valid JSON"} {
		_, err := server().File(owns(t, text, true).path, settings.RefuseLinks, true).Write()
		require.ErrorContains(t, err, want)
	}
}

func TestServerFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), settings.ServersName)
	changed, err := server().File(path, settings.RefuseLinks, true).Write()
	require.NoError(t, err)
	assert.True(t, changed)
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.JSONEq(t, `{"mcpServers":{"heartbeat":{"type":"stdio","command":"/opt/heartbeat-mcp","args":["--inbox","`+inbox+`","--role","agent"],"alwaysLoad":true}}}`, string(text))
	changed, err = server().File(path, settings.RefuseLinks, false).Write()
	require.NoError(t, err)
	assert.True(t, changed)
	assert.NoFileExists(t, path)
}
