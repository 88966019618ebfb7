package command

import (
	"bytes"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/cli"
	"heartbeat/internal/hosting/folder"
	hosting "heartbeat/internal/hosting/verbs"
)

func TestIDsOfHostedSessions(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	db, ended := filepath.Join(t.TempDir(), "nexus.db"), time.Now()
	index, err := folder.UserIndex()
	require.NoError(t, err)
	for id, status := range map[string]folder.Status{"ses-a": folder.Completed, "ses-b": folder.Running} {
		f, err := folder.At(db, id)
		require.NoError(t, err)
		lock, err := f.Claim(t.Context())
		require.NoError(t, err)
		s := &folder.State{Version: folder.Version, SessionID: id, Status: status, DB: db}
		if status.Ended() {
			s.EndedAt = &ended
		}
		require.NoError(t, lock.Write(s))
		require.NoError(t, lock.Release())
		require.NoError(t, index.Add(f))
	}
	var out bytes.Buffer
	assert.Equal(t, 0, Run([]string{"__ids", hosting.SessionIDs}, cli.Streams{Out: &out, Err: &out}))
	assert.Equal(t, "ses-b\tdead\nses-a\tcompleted\n", out.String())
}
