package meter

import (
	"errors"
	"path/filepath"
	"strings"

	"heartbeat/internal/disk"
)

// oldName is the file in which earlier releases kept a count; before that there was one for each session, with the
// session's name behind it.
const oldName = ".meter"

// Prune removes those of earlier releases from the folder of an inbox.
func Prune(dir string) error {
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return err
	}
	names, _, err := disk.Names(dir, 10_000)
	for _, name := range names {
		path := filepath.Join(dir, name)
		if name != oldName && !strings.HasPrefix(name, oldName+"-") {
			continue
		}
		if info, errStat := disk.StatName(path); errStat == nil && info.IsRegular && isCount(path) {
			err = errors.Join(err, disk.Remove(path))
		}
	}
	return err
}

// isCount reports whether a file begins, or has a second half that begins, as an earlier release wrote it: three words
// that are hexadecimal numbers, or two and an object.
func isCount(path string) bool {
	f, err := disk.OpenRead(path)
	if err != nil {
		return false
	}
	defer f.Close() // it was only read
	for _, at := range [...]int64{0, 512 << 10} {
		var head [43]byte
		n, _ := f.ReadAt(head[:], at)
		fields := strings.Fields(string(head[:n]))
		if n == len(head) && len(fields) == 3 && (head[n-1] == '\n' || strings.HasPrefix(fields[2], `{"v":`)) {
			return true
		}
	}
	return false
}
