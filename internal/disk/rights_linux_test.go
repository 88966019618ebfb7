package disk_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"heartbeat/internal/disk"
)

// The mode of a directory with an access list shows the list's mask as the group's rights.
func TestAccessListGrantsWrite(t *testing.T) {
	// list lets its owner do all, user 4242 what named says, and the group what group says.
	list := func(named, group byte) []byte {
		raw := []byte{2, 0, 0, 0}
		for _, e := range [][3]byte{{0x01, 7}, {0x02, named, 1}, {0x04, group}, {0x10, 7}, {0x20, 0}} {
			id := []byte{0xff, 0xff, 0xff, 0xff}
			if e[2] != 0 {
				id = []byte{0x92, 0x10, 0, 0}
			}
			raw = append(append(raw, e[0], 0, e[1], 0), id...)
		}
		return raw
	}
	for _, c := range []struct {
		named, group byte
		want         bool
	}{{7, 5, true}, {5, 7, false}, {2, 0, true}} {
		dir := t.TempDir()
		if err := unix.Setxattr(dir, "system.posix_acl_access", list(c.named, c.group), 0); err != nil {
			t.Skipf("no access lists here: %v", err)
		}
		info, err := disk.StatDir(dir)
		require.NoError(t, err)
		assert.Equal(t, uint32(0o770), info.Mode)
		assert.Equal(t, c.want, info.Granted, "named %o, group %o", c.named, c.group)
	}
}
