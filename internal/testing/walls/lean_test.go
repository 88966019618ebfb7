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
	"jsonschema":                          "the schemas of results",
	"log/slog":                            "the schemas of results",
	"math/big":                            "the schemas of results",
	"regexp":                              "what reads output of other programs",
	"encoding/xml":                        "what writes reports",
	"text/template":                       "what writes pages",
	"net/http":                            "anything that serves",
	"os/user":                             "names of people",
	"encoding/base32":                     "nothing: its tables are made at each start",
	"github.com/tidwall":                  "what reads JSON of others by paths: its tables are made at each start",
	"heartbeat/orchestrate/run":           "runs",
	"heartbeat/orchestrate/prompt":        "runs",
	"heartbeat/orchestrate/schema":        "runs",
	"heartbeat/internal/hook/runs":        "runs",
	"heartbeat/internal/command":          "the verbs",
	"heartbeat/internal/see":              "status",
	"heartbeat/internal/launch":           "the launcher",
	"heartbeat/internal/supervise":        "the launcher",
	"heartbeat/internal/hosting":          "the host of sessions",
	"heartbeat/internal/watch":            "the live view",
	"charm.land":                          "the live view",
	"github.com/nats-io":                  "the fleet",
	"heartbeat/internal/fleet":            "the fleet",
	"heartbeat/internal/mcp":              "the tools",
	"heartbeat/internal/task":             "the tools",
	"modernc.org":                         "the host of sessions",
	"heartbeat/internal/screen":           "the launcher",
	"heartbeat/internal/codex/configfile": "install",
	"heartbeat/internal/claude/settings":  "install and doctor",
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

// The launcher and the host carry neither the live view nor the tools of agents.
func TestTheTerminalLibraryIsTheCommandsAlone(t *testing.T) {
	for _, command := range []string{"heartbeat-launch", "heartbeat-host"} {
		out, err := exec.Command("go", "list", "-deps", "heartbeat/cmd/"+command).Output()
		require.NoError(t, err)
		for _, of := range []string{"charm.land", "heartbeat/internal/mcp", "heartbeat/internal/watch"} {
			assert.NotContains(t, string(out), of, command)
		}
	}
}

// Who needs one machine alone does not carry a NATS server.
func TestNATSIsTheFleetsAlone(t *testing.T) {
	for _, command := range []string{"heartbeat", "heartbeat-stop", "heartbeat-launch", "heartbeat-host"} {
		out, err := exec.Command("go", "list", "-deps", "heartbeat/cmd/"+command).Output()
		require.NoError(t, err)
		assert.NotContains(t, string(out), "github.com/nats-io", command)
	}
}

// What stands in for something in tests is a part of no command.
func TestRigsAreNotShipped(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", "heartbeat/cmd/...").Output()
	require.NoError(t, err)
	for linked := range strings.FieldsSeq(string(out)) {
		for _, rig := range []string{"heartbeat/internal/testing", "heartbeat/internal/bench", "github.com/stretchr", "testing"} {
			assert.False(t, linked == rig || strings.HasPrefix(linked, rig+"/"), "a command links %s", linked)
		}
	}
}

// A package with imports starts after them, when the stack has grown already.
func TestTheStackGrowsFirst(t *testing.T) {
	out, err := exec.Command("go", "list", "-f", "{{.Imports}}", "heartbeat/internal/platform").Output()
	require.NoError(t, err)
	assert.Equal(t, "[]", strings.TrimSpace(string(out)))
}
