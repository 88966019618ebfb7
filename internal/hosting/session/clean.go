package session

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"heartbeat/internal/disk"
	"heartbeat/internal/hosting/folder"
)

func parseDuration(text string) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	return time.ParseDuration(text)
}

// maxTemp is more names than the folder of temporary files ever has.
const maxTemp = 1000

// clean removes the temporary files of a session.
func clean(f folder.Folder) error {
	names, _, err := disk.Names(f.TempDir(), maxTemp)
	if err != nil && !os.IsNotExist(err) {
		return fmt.Errorf("remove the session's temporary files: %w", err)
	}
	for _, name := range names {
		if err := disk.Remove(filepath.Join(f.TempDir(), name)); err != nil {
			return fmt.Errorf("remove the session's temporary files: %w", err)
		}
	}
	_ = os.Remove(f.TempDir())
	if err := disk.Remove(f.SocketPath()); err != nil { // a dead host's
		return fmt.Errorf("remove the session's socket: %w", err)
	}
	return nil
}
