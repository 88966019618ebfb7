package verbs

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/cli"
	"heartbeat/internal/fleet/setup"
	"heartbeat/internal/testing/fleet"
)

// run runs the command.
func run(t *testing.T, args ...string) (status int, out, complaints string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	status = Run(args, cli.Streams{Command: commandName, Out: &stdout, Err: &stderr})
	return status, stdout.String(), stderr.String()
}

func TestSetup(t *testing.T) {
	s := fleet.Start(t)
	_, js := s.Connect(t)
	status, out, said := run(t, "setup", "--server", s.URL(), "--dry-run")
	require.Zero(t, status, said)
	assert.Equal(t, 6, strings.Count(out, "would make "), out)
	_, err := setup.Open(fleet.Context(t), js, "WORK")
	require.Error(t, err)

	status, out, said = run(t, "setup", "--server", s.URL())
	require.Zero(t, status, said)
	assert.Contains(t, out, "made stream WORK (messages of work.>)\n")
	_, err = setup.Open(fleet.Context(t), js, "WORK")
	require.NoError(t, err)

	status, out, said = run(t, "setup", "--server", s.URL(), "--ack-wait", "30s", "--json")
	require.Zero(t, status, said)
	lines := strings.Split(strings.TrimSpace(out), "\n")
	require.Len(t, lines, 6)
	var step setup.Step
	require.NoError(t, json.Unmarshal([]byte(lines[1]), &step))
	assert.Equal(t, setup.Change, step.Action)
	assert.Equal(t, []string{"AckWait is 1m0s and becomes 30s"}, step.Differs)

	status, _, said = run(t, "setup", "--server", s.URL(), "--for", "work.a")
	require.Zero(t, status)
	assert.Contains(t, said, "other messages wait until there is a consumer for them")

	for _, bad := range [][]string{
		{"--ack-wait", "2s"}, {"--max-deliver", "0"}, {"--subjects", ""}, {"--stream", "a.b"}, {"more"},
		{"--replicas", "9"}, {"--embed", "x"}, {"--for", "else.a"},
	} {
		status, out, said := run(t, append([]string{"setup", "--server", s.URL()}, bad...)...)
		assert.Equal(t, cli.ExitError, status, "%q", bad)
		assert.Empty(t, out)
		assert.Regexp(t, "^heartbeat-nats: ", said)
	}
}

func TestSetupOnThisMachine(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "server")
	status, out, said := run(t, "setup", "--embed", dir)
	require.Zero(t, status, said)
	assert.Contains(t, out, "made stream WORK")
	status, out, said = run(t, "setup", "--embed", dir)
	require.Zero(t, status, said)
	assert.Equal(t, 6, strings.Count("\n"+out, "\nkept "), out)
}

func TestTheCommandItself(t *testing.T) {
	for _, args := range [][]string{{}, {"help"}, {"--help"}} {
		status, out, _ := run(t, args...)
		assert.Zero(t, status)
		assert.Contains(t, out, "  setup ")
	}
	_, help, _ := run(t, "help", "setup")
	_, same, _ := run(t, "setup", "--help")
	assert.Equal(t, same, help)
	for _, args := range [][]string{{"--version"}, {"version", "--json"}, {"man"}, {"man", "setup"}} {
		status, out, said := run(t, args...)
		assert.Zero(t, status, said)
		assert.NotEmpty(t, out)
	}
	for args, want := range map[string]string{"setpu": "did you mean setup?", "--vresion": "did you mean --version?", "man none": "unknown verb"} {
		status, _, said := run(t, strings.Fields(args)...)
		assert.Equal(t, cli.ExitError, status)
		assert.Contains(t, said, want)
	}
}
