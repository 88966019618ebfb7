package crash

import (
	"os"
	"testing"
)

// memory is a directory in memory on Linux.
const memory = "/dev/shm"

// tempDir returns a directory for one run, in memory if possible, where syncing
// costs nothing. A disk is not needed: crashes are made by recording and cutting off
// the run's calls.
func tempDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp(memory, "heartbeat-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Errorf("crash: remove the directory of a run: %v", err)
		}
	})
	return dir
}
