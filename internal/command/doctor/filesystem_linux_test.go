package doctor

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"golang.org/x/sys/unix"
)

func TestFileSystem(t *testing.T) {
	for says, c := range map[string]struct {
		free int64
		st   unix.Statfs_t
	}{
		"":                           {free: 1 << 40},
		"warn is on NFS":             {1 << 40, unix.Statfs_t{Type: unix.NFS_SUPER_MAGIC}},
		"warn is in memory":          {1 << 40, unix.Statfs_t{Type: unix.TMPFS_MAGIC}},
		"fail is mounted read-only":  {1 << 40, unix.Statfs_t{Flags: unix.ST_RDONLY}},
		"warn 67.1 MB left":          {free: 64<<20 - 1},
		"fail nothing can be commit": {free: 64<<10 - 1},
		"fail no inode":              {free: 0},
		" which never says that an inode is free": {65 << 20, unix.Statfs_t{Files: 100}},
		" which tells no space":                   {free: -1},
	} {
		w := newWorld(t)
		e := &examination{Input: w.Input, inbox: w.Inbox}
		e.checkFileSystem("/box", c.st, c.free, 64<<10)
		if state, text, _ := strings.Cut(says, " "); state == "" {
			assert.Empty(t, e.found, says)
		} else if assert.Len(t, e.found, 1, says) {
			assert.Equal(t, state, e.found[0].State)
			assert.Contains(t, e.found[0].Evidence, text)
		}
	}
	kinds := map[uint32]string{
		unix.NFS_SUPER_MAGIC: "NFS", unix.SMB_SUPER_MAGIC: "SMB", unix.SMB2_SUPER_MAGIC: "SMB", unix.CIFS_SUPER_MAGIC: "SMB", unix.FUSE_SUPER_MAGIC: "FUSE",
		unix.V9FS_MAGIC: "9p", unix.CEPH_SUPER_MAGIC: "Ceph", unix.AFS_SUPER_MAGIC: "AFS", unix.AFS_FS_MAGIC: "AFS", unix.CODA_SUPER_MAGIC: "Coda",
	}
	assert.Equal(t, kinds, farAway)
	assert.Equal(t, []uint32{unix.TMPFS_MAGIC, unix.RAMFS_MAGIC}, inMemory)
}
