package session_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/hosting/folder"
	"heartbeat/internal/hosting/session"
	"heartbeat/internal/testing/guild"
)

// noRoom leaves nothing on disk for messages and reports.
func (r *rig) noRoom() {
	for _, dir := range []string{"heartbeat-host", "heartbeat-host/ses-1", "heartbeat-host/ses-1/messages.spool", "nexus.db"} {
		require.NoError(r.t, os.Mkdir(r.path(dir), 0o700))
	}
	require.NoError(r.t, os.WriteFile(r.path("dlq"), nil, 0o600))
}

// A report that no file can take has the messages that only the host's memory has.
func TestReportFromMemory(t *testing.T) {
	r := newRig(t, "hello")
	r.noRoom()
	_, o := r.run()
	assert.True(t, o.Delivered)
	s, _ := r.guild.Session("ses-1")
	assert.Equal(t, 1, s.Messages)
	assert.Equal(t, folder.Delivered, r.state().TerminalReport.State)
}

// A report that could neither be kept nor sent is made again.
func TestReportMadeAgain(t *testing.T) {
	r := newRig(t, "hello")
	r.noRoom()
	r.guild.Break(guild.Fault{On: "record", Do: guild.Answer, Status: 403, Times: -1})
	_, o := r.run()
	assert.False(t, o.Delivered)
	assert.Empty(t, r.state().TerminalReport.State)
	_, err := session.Finish(t.Context(), r.folder().Dir())
	require.ErrorContains(t, err, "can neither be kept nor sent")
	require.NoError(t, os.Remove(r.path("dlq")))
	_, err = session.Finish(t.Context(), r.folder().Dir())
	require.NoError(t, err)
	assert.Equal(t, folder.Refused, r.state().TerminalReport.State)
	assert.FileExists(t, r.path("dlq/ses-1.json"))
}
