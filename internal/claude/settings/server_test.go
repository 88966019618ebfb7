package settings_test

import (
	"math/rand/v2"
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

// The file of the servers is edited as the settings are: only our bytes come and go.
func TestServerRoundTrip(t *testing.T) {
	texts := []string{"", "{}", `{"mcpServers": {}}`, `{"mcpServers":{"files":{"command":"x"}},}`, "{\n\t\"mcpServers\": { // all\n\t\t\"files\": {}\n\t}\n}\n"}
	for seed := range uint64(300) {
		texts = append(texts, generate(rand.New(rand.NewPCG(seed, 7))))
	}
	for _, x := range texts {
		y, err := settings.InstallServer([]byte(x), server())
		require.NoError(t, err, x)
		has, err := settings.HasServer(y, server())
		require.NoError(t, err)
		assert.True(t, has)
		again, err := settings.InstallServer(y, server())
		require.NoError(t, err)
		assert.Equal(t, string(y), string(again), "a second install changes nothing")
		back, err := settings.UninstallServer(y, server())
		require.NoError(t, err)
		assert.Equal(t, x, string(back), "uninstall restores every byte")
		moved := server()
		moved.Command, moved.Args = "/moved/heartbeat-mcp", []string{"--inbox=" + inbox}
		z, err := settings.InstallServer(y, moved)
		require.NoError(t, err)
		assert.Contains(t, string(z), "/moved/heartbeat-mcp")
		back, err = settings.UninstallServer(z, server())
		require.NoError(t, err)
		assert.Equal(t, x, string(back), "uninstall after a change")
	}
}

// What is another's under the name is left alone, and named.
func TestServerOfSomebodyElse(t *testing.T) {
	for _, text := range []string{
		`{"mcpServers":{"heartbeat":{"command":"/usr/bin/other","args":["--inbox","` + inbox + `"]}}}`,
		`{"mcpServers":{"heartbeat":{"command":"/opt/heartbeat-mcp","args":["--inbox","/another.jsonl"]}}}`,
		`{"mcpServers":{"heartbeat":{"type":"http","url":"http://localhost"}}}`,
		`{"mcpServers":{"heartbeat":7}}`,
	} {
		_, err := settings.InstallServer([]byte(text), server())
		var another *settings.ServerError
		require.ErrorAs(t, err, &another)
		assert.Contains(t, err.Error(), "mcpServers.heartbeat at line 1 is another server")
		back, err := settings.UninstallServer([]byte(text), server())
		require.NoError(t, err)
		assert.Equal(t, text, string(back))
	}
	_, err := settings.InstallServer([]byte(`{"mcpServers":[]}`), server())
	var shape *settings.ShapeError
	require.ErrorAs(t, err, &shape)
	_, err = settings.InstallServer([]byte(`{"mcpServers"`), server())
	var syntax *settings.SyntaxError
	require.ErrorAs(t, err, &syntax)
}

func TestServerFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), settings.ServersName)
	changed, err := settings.InstallServerFile(path, server(), settings.RefuseLinks)
	require.NoError(t, err)
	assert.True(t, changed)
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.JSONEq(t, `{"mcpServers":{"heartbeat":{"type":"stdio","command":"/opt/heartbeat-mcp","args":["--inbox","`+inbox+`","--role","agent"],"alwaysLoad":true}}}`, string(text))
	changed, err = settings.UninstallServerFile(path, server(), settings.RefuseLinks)
	require.NoError(t, err)
	assert.True(t, changed)
	assert.NoFileExists(t, path)
}
