package crash

import (
	"os"
	"testing"
)

// memory is where a Linux system keeps files that no disk has.
const memory = "/dev/shm"

// tempDir is a directory for one run. What a run does is recorded and cut off by
// call, so no disk is needed: without one, syncing costs nothing.
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
