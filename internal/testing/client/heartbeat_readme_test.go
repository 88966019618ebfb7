package client

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/testing/docs"
	"heartbeat/internal/testing/model"
)

// The README's commands work in its order with the client: a first session, cron, a
// pipeline, a supervisor, and a session of one's own.
func TestHeartbeatReadme(t *testing.T) {
	w := workspace(t, Find(t), func(r model.Request) model.Reply { return model.Text("This answers " + asked(r.UserText)) })
	agent := filepath.Join(w.Home, "agent") // the folder that the README has a person make and trust
	first := w.firstRun()
	first["projects"] = map[string]any{agent: map[string]any{"hasTrustDialogAccepted": true}}
	w.writeJSON(filepath.Join(w.Home, ".claude.json"), first)

	cmd, err := docs.Follow(minutes(t), "../../..", w.Home, w.binary)
	require.NoError(t, err)
	cmd.Env = w.environ(cmd.Env)
	combined, err := cmd.CombinedOutput()
	out := string(combined)
	require.NoError(t, err, out)
	rest, found := out, false
	for _, want := range docs.Said {
		_, rest, found = strings.Cut(rest, want)
		require.True(t, found, "%q is not in its place in\n%s", want, out)
	}
	assert.NoFileExists(t, filepath.Join(agent, "queue", ".in-flight"))
}

// A fleet on one machine works as its page says, where only the folder is trusted that the
// page has a person trust.
func TestHeartbeatFleetPage(t *testing.T) {
	w := workspace(t, Find(t), func(r model.Request) model.Reply { return model.Text("This answers " + asked(r.UserText)) })
	first := w.firstRun()
	first["projects"] = map[string]any{filepath.Join(w.Home, "work", "one"): map[string]any{"hasTrustDialogAccepted": true}}
	w.writeJSON(filepath.Join(w.Home, ".claude.json"), first)

	cmd, err := docs.FollowFleet(minutes(t), "../../..", w.Home, w.binary, filepath.Dir(natsCommand(t)))
	require.NoError(t, err)
	cmd.Env = w.environ(cmd.Env)
	combined, err := cmd.CombinedOutput()
	out := string(combined)
	require.NoError(t, err, out)
	rest, found := out, false
	for _, want := range docs.FleetSaid {
		_, rest, found = strings.Cut(rest, want)
		require.True(t, found, "%q is not in its place in\n%s", want, out)
	}
}

// asked is the last line that is not the client's own: an entry's whole text, in the README.
func asked(said string) (last string) {
	for line := range strings.Lines(said) {
		if line = strings.TrimSpace(line); line != "" && !strings.Contains(line, "system-reminder") {
			last = line
		}
	}
	return last
}
