package disk_test

import (
	"encoding/binary"
	"math"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"heartbeat/internal/disk"
)

// The mode of a directory with an access list shows the list's mask as the group's rights.
func TestAccessListGrantsWrite(t *testing.T) {
	// list lets its owner do all, a user what named says, and the group what group says.
	list := func(id uint32, named, group byte) []byte {
		raw := []byte{2, 0, 0, 0}
		for _, e := range [][3]byte{{0x01, 7}, {0x02, named, 1}, {0x04, group}, {0x10, 7}, {0x20, 0}} {
			who := uint32(math.MaxUint32)
			if e[2] != 0 {
				who = id
			}
			raw = binary.LittleEndian.AppendUint32(append(raw, e[0], 0, e[1], 0), who)
		}
		return raw
	}
	for _, c := range []struct {
		id           uint32
		named, group byte
		want         bool
	}{{4242, 7, 5, true}, {4242, 5, 7, false}, {4242, 2, 0, true}, {uint32(os.Getuid()), 7, 5, false}, {0, 7, 5, false}} {
		dir := t.TempDir()
		if err := unix.Setxattr(dir, "system.posix_acl_access", list(c.id, c.named, c.group), 0); err != nil {
			t.Skipf("no access lists here: %v", err)
		}
		info, err := disk.StatDir(dir)
		require.NoError(t, err)
		assert.Equal(t, uint32(0o770), info.Mode)
		assert.Equal(t, c.want, info.Granted, "user %d %o, group %o", c.id, c.named, c.group)
	}
}

// A file system may have room that this user may not use.
func TestTakesFile(t *testing.T) {
	require.NoError(t, disk.TakesFile(t.TempDir(), 1))
	require.NoError(t, disk.TakesFile("/nowhere", 1), "not certain")
	var st unix.Statfs_t
	if unix.Statfs("/dev/shm", &st) != nil || st.Type != unix.TMPFS_MAGIC || st.Blocks == 0 {
		t.Skip("/dev/shm has no limit here")
	}
	require.ErrorIs(t, disk.TakesFile("/dev/shm", 1<<50), unix.ENOSPC)
}
