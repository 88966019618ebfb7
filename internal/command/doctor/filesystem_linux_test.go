package doctor

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"heartbeat/inbox"
)

func TestFileSystem(t *testing.T) {
	of := func(free uint64, change func(*unix.Statfs_t)) (st unix.Statfs_t) {
		st.Bavail, st.Bsize, st.Files, st.Ffree = free, 1, 100, 50
		if change != nil {
			change(&st)
		}
		return st
	}
	for says, st := range map[string]unix.Statfs_t{
		"":                             of(1<<40, nil),
		"warn is on NFS":               of(1<<40, func(st *unix.Statfs_t) { st.Type = unix.NFS_SUPER_MAGIC }),
		"warn is in memory":            of(1<<40, func(st *unix.Statfs_t) { st.Type = unix.TMPFS_MAGIC }),
		"fail is mounted read-only":    of(1<<40, func(st *unix.Statfs_t) { st.Flags = unix.ST_RDONLY }),
		"warn 67.1 MB left":            of(64<<20-1, nil),
		"fail nothing can be commit":   of(64<<10-1, nil),
		"fail no inode":                of(1<<40, func(st *unix.Statfs_t) { st.Ffree = 0 }),
		" one without a limit of them": of(65<<20, func(st *unix.Statfs_t) { st.Files, st.Ffree = 0, 0 }),
	} {
		w := newWorld(t)
		box, err := inbox.Open(w.Inbox, inbox.Options{})
		require.NoError(t, err)
		e := &examination{Input: w.Input, inbox: w.Inbox, box: box}
		e.checkFileSystem("/box", st)
		if state, text, _ := strings.Cut(says, " "); state == "" {
			assert.Empty(t, e.found)
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
