package inbox

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"heartbeat/internal/disk"
	"heartbeat/internal/journal"
)

// commitSize is the most that one commit needs, apart from a reply.
const commitSize = 64 << 10

// ErrFull says that there is no space for a commit.
var ErrFull = errors.New("the file system is full")

// Room is how many bytes this user may still write beside the inbox (-1 if
// unknown), and how many the next commit may need; the first one creates the
// journal.
func (b *Inbox) Room() (left, needed int64) {
	left, needed = -1, commitSize
	var st unix.Statfs_t
	if unix.Statfs(b.dir, &st) == nil {
		left = int64(st.Bavail) * int64(st.Bsize)
	}
	if there, err := disk.Exists(b.beside(journal.JournalName)); err == nil && !there {
		needed += journal.Size
	}
	return left, needed
}

// CheckRoom returns an error that matches [ErrFull] if there is no space for a
// commit.
func (b *Inbox) CheckRoom() error {
	if left, needed := b.Room(); left >= 0 && left < needed {
		return fmt.Errorf("%w: %s has %d bytes left, and %d are needed: free some space", ErrFull, b.dir, left, needed)
	}
	return nil
}
