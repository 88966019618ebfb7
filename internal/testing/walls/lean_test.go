package walls

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// heavy is what the hook, which starts at each turn, must not link: a part of an
// import path, and what of ours has it.
var heavy = map[string]string{
	"jsonschema":                         "the schemas of results",
	"log/slog":                           "the schemas of results",
	"math/big":                           "the schemas of results",
	"regexp":                             "what reads output of other programs",
	"encoding/xml":                       "what writes reports",
	"text/template":                      "what writes pages",
	"net/http":                           "anything that serves",
	"os/user":                            "names of people",
	"encoding/base32":                    "nothing: its tables are made at each start",
	"github.com/tidwall":                 "what reads JSON of others by paths: its tables are made at each start",
	"heartbeat/orchestrate/run":          "runs",
	"heartbeat/orchestrate/prompt":       "runs",
	"heartbeat/orchestrate/schema":       "runs",
	"heartbeat/orchestrate/session":      "runs",
	"heartbeat/internal/hook/runs":       "runs",
	"heartbeat/internal/bridges":         "runs",
	"heartbeat/internal/command":         "the verbs",
	"heartbeat/internal/why":             "status",
	"heartbeat/internal/launch":          "the launcher",
	"heartbeat/internal/hosting":         "the host of sessions",
	"heartbeat/internal/watching":        "the live view",
	"charm.land":                         "the live view",
	"github.com/nats-io":                 "the fleet",
	"heartbeat/internal/fleet":           "the fleet",
	"heartbeat/internal/mcp":             "the tools",
	"heartbeat/internal/task":            "the tools",
	"modernc.org":                        "the host of sessions",
	"heartbeat/internal/screen":          "the launcher",
	"heartbeat/internal/claude/screen":   "the launcher",
	"heartbeat/internal/codex/screen":    "the launcher",
	"heartbeat/internal/codex/server":    "the launcher and doctor",
	"heartbeat/internal/codex/config":    "install",
	"heartbeat/internal/claude/settings": "install and doctor",
}

func TestTheHookIsLean(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", "heartbeat/cmd/heartbeat-stop").Output()
	require.NoError(t, err)
	all := strings.Fields(string(out))
	require.Contains(t, all, "heartbeat/inbox")
	assert.NotContains(t, all, "heartbeat/orchestrate")
	assert.NotContains(t, all, "heartbeat/orchestrate/babysitter")
	for _, linked := range all {
		for part, of := range heavy {
			assert.NotContains(t, linked, part, "it belongs to %s", of)
		}
	}
}

// Those who do not want the live view do not carry it: it is in a command of its own.
func TestTheTerminalLibraryIsTheWatchersAlone(t *testing.T) {
	for _, command := range []string{"heartbeat", "heartbeat-launch", "heartbeat-host"} {
		out, err := exec.Command("go", "list", "-deps", "heartbeat/cmd/"+command).Output()
		require.NoError(t, err)
		assert.NotContains(t, string(out), "charm.land", command)
	}
}

// Who needs one machine alone does not carry a NATS server.
func TestNATSIsTheFleetsAlone(t *testing.T) {
	for _, command := range []string{"heartbeat", "heartbeat-stop", "heartbeat-launch", "heartbeat-host", "heartbeat-watch", "heartbeat-meter"} {
		out, err := exec.Command("go", "list", "-deps", "heartbeat/cmd/"+command).Output()
		require.NoError(t, err)
		assert.NotContains(t, string(out), "github.com/nats-io", command)
	}
}

// A package with imports starts after them, when the stack has grown already.
func TestTheStackGrowsFirst(t *testing.T) {
	out, err := exec.Command("go", "list", "-f", "{{.Imports}}", "heartbeat/internal/stack").Output()
	require.NoError(t, err)
	assert.Equal(t, "[]", strings.TrimSpace(string(out)))
}
