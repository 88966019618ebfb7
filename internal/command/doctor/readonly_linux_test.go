package doctor

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"heartbeat/inbox"
	"heartbeat/internal/disk"
	"heartbeat/internal/see"
	"heartbeat/internal/testing/script"
)

// A file system that its errors made read-only refuses writers, and may look writable to everybody else. No state file
// is to be taken away for that.
func TestReadOnlyByErrors(t *testing.T) {
	dir := t.TempDir()
	box, err := inbox.Open(filepath.Join(dir, "inbox.jsonl"), inbox.Options{})
	require.NoError(t, err)
	tx, err := box.Begin(t.Context())
	require.NoError(t, err)
	require.NoError(t, tx.Close())
	for _, name := range []string{".inbox-lock", ".inbox-journal"} {
		script.ReadOnly(t, filepath.Join(dir, name))
	}

	assert.ErrorIs(t, disk.MayWrite(dir, ".inbox-lock"), unix.EROFS)
	assert.ErrorIs(t, see.Glance(t.Context(), box, nil).Unwritable, unix.EROFS)
	found := fsckOf(t, box)
	require.Len(t, found, 1)
	assert.Equal(t, "directory: the file system of "+dir+" is read-only: nothing can be delivered", found[0])
}
