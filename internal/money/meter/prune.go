package meter

import (
	"errors"
	"path/filepath"
	"strings"

	"heartbeat/internal/disk"
)

// Prune removes the files of a count that earlier releases kept in the folder of an inbox: .meter, and before that
// one for each session, .meter-UUID.
func Prune(dir string) error {
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return err
	}
	names, _, err := disk.Names(dir, 10_000)
	for _, name := range names {
		session, is := strings.CutPrefix(name, ".meter")
		if !is || session != "" && (session[0] != '-' || len(session) != 1+uuid || strings.Trim(session, "-0123456789abcdef") != "") {
			continue
		}
		path := filepath.Join(dir, name)
		if info, errStat := disk.StatName(path); errStat == nil && info.IsRegular {
			err = errors.Join(err, disk.Remove(path))
		}
	}
	return err
}
