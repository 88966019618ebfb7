package folder_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/hosting/folder"
)

func TestRoundTrip(t *testing.T) {
	db := filepath.Join(t.TempDir(), "nexus.db")
	f, err := folder.At(db, "ses-1")
	require.NoError(t, err)
	lock, err := f.Claim(t.Context())
	require.NoError(t, err)
	require.NoError(t, lock.Write(&folder.State{Version: 1, SessionID: "ses-1", Status: folder.Running}))
	s, err := f.Read()
	require.NoError(t, err)
	assert.Equal(t, folder.Running, s.Status)

	var busy *folder.BusyError
	_, err = f.Lock(t.Context())
	require.ErrorAs(t, err, &busy)
	require.NoError(t, lock.Release())

	x := folder.IndexAt(filepath.Join(t.TempDir(), "a", "b"))
	require.NoError(t, x.Add(f))
	found, err := x.Find("ses-1")
	require.NoError(t, err)
	assert.Equal(t, []folder.Folder{f}, found)
	all, err := folder.Beside(db)
	require.NoError(t, err)
	assert.Equal(t, []folder.Folder{f}, all)
	require.NoError(t, x.Remove(f))
	found, err = x.Find("ses-1")
	require.NoError(t, err)
	assert.Empty(t, found)
}
