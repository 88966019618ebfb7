package run

import (
	"encoding/binary"
	"encoding/hex"
	"time"

	"golang.org/x/sys/unix"
)

// grain is the coarsest resolution of file times among the file systems in use. Two changes
// within it may leave the same time.
var grain = 2 * time.Second

// stampOf is a stamp of a directory that stays the same as long as no name in it changes.
// young says that one more change might leave the same stamp.
func stampOf(fd int) (stamp string, young bool, err error) {
	now := time.Now().UnixNano()
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return "", false, err
	}
	return stampText(&st), now-max(st.Mtim.Nano(), st.Ctim.Nano()) < int64(grain), nil
}

// fileStamp is the stamp of a file in an open directory, or "" if there is none.
func fileStamp(dir int, name string) string {
	var st unix.Stat_t
	if name == "" || unix.Fstatat(dir, name, &st, 0) != nil {
		return ""
	}
	return stampText(&st)
}

func stampText(st *unix.Stat_t) string {
	var b [40]byte
	for i, n := range [...]uint64{uint64(st.Dev), st.Ino, uint64(st.Size), uint64(st.Mtim.Nano()), uint64(st.Ctim.Nano())} {
		binary.BigEndian.PutUint64(b[8*i:], n)
	}
	return hex.EncodeToString(b[:])
}
