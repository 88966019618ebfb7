package session_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/hosting/folder"
)

func TestCompleted(t *testing.T) {
	t.Parallel()
	r := newRig(t, "hello complain:oops")
	up, o := r.run()
	log, err := os.ReadFile(r.path("logs/ses-1.log"))
	require.NoError(t, err)
	t.Log(string(log))
	assert.Equal(t, folder.Completed, o.State, o.Error)
	assert.True(t, o.Delivered)
	assert.Equal(t, up.PID, up.PGID)

	report := r.report()
	assert.Equal(t, "completed", report["status"])
	assert.Equal(t, "done: hello complain:oops", report["output"])
	assert.Equal(t, 0.0, report["exitCode"])
	assert.Equal(t, 0.01, report["costUsd"])
	s, _ := r.guild.Session("ses-1")
	assert.Equal(t, 1, s.Running.Applied)
	assert.Equal(t, 1, s.Record.Applied)
	assert.Zero(t, s.Record.Repeated)
	assert.Equal(t, up.PGID, s.PGID)
	assert.Equal(t, 1, s.Messages)
	r.isClean()
	assert.Contains(t, string(log), "\noops\n")
}

// isClean checks that a session left nothing but its record.
func (r *rig) isClean() {
	r.t.Helper()
	s := r.state()
	assert.True(r.t, s.Status.Ended())
	assert.Equal(r.t, folder.Delivered, s.TerminalReport.State)
	for _, gone := range []string{"dlq/ses-1.json", "heartbeat-host/ses-1/tmp", "heartbeat-host/ses-1/sock"} {
		assert.NoFileExists(r.t, r.path(gone))
		assert.NoDirExists(r.t, r.path(gone))
	}
	unsent, err := r.store().Unsent(r.t.Context())
	require.NoError(r.t, err)
	assert.Empty(r.t, unsent)
	left, err := os.ReadDir(r.path("temporary"))
	require.NoError(r.t, err)
	assert.Empty(r.t, left)
}
