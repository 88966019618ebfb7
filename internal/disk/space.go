package disk

import "golang.org/x/sys/unix"

// Free is how many bytes this process may still write in a folder.
func Free(dir string) (int64, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return 0, err
	}
	return int64(uint64(st.Bavail) * uint64(st.Bsize)), nil //nolint:unconvert // they have other types elsewhere
}
