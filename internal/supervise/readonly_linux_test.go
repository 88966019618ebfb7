package supervise

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"heartbeat/inbox"
)

// While its file system is read-only, the hook cannot say why it delivers nothing, so the log does, once.
func TestReadOnlyIsLogged(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root mounts")
	}
	_, box := newRun(t, Persist)
	change(t, box, deliver)
	_, look := told(t, box)
	assert.Len(t, look(), 1)

	lock := filepath.Join(box.Dir(), inbox.LockName)
	if err := unix.Mount(lock, lock, "", unix.MS_BIND, ""); err != nil {
		t.Skipf("no file may be mounted here: %v", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(lock, unix.MNT_DETACH) }) // fails if the test came to its end
	require.NoError(t, unix.Mount("", lock, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY, ""))
	assert.Equal(t, []string{"nothing can be delivered or acknowledged: write to " + box.Dir() + ": read-only file system"}, look())
	assert.Empty(t, look())

	require.NoError(t, unix.Unmount(lock, 0))
	change(t, box, answerAndDeliver)
	assert.Len(t, look(), 2)
}
