package script

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// ReadOnly makes a file read-only for everybody, as a file system does after errors, until the test calls writable or
// ends. It skips a test that may not mount.
func ReadOnly(t testing.TB, path string) (writable func()) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root mounts")
	}
	if err := unix.Mount(path, path, "", unix.MS_BIND, ""); err != nil {
		t.Skipf("no file may be mounted here: %v", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(path, unix.MNT_DETACH) }) // fails if it is writable again
	require.NoError(t, unix.Mount("", path, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY, ""))
	return func() { require.NoError(t, unix.Unmount(path, 0)) }
}
