package session

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
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

// clean removes the temporary files of a session, and the folder that the guild asked
// to have removed.
func clean(f folder.Folder, s folder.State) error {
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
	return removePromptDir(s)
}

// removePromptDir removes the folder of the system prompt. The guild made it for this
// session, so one that holds anything else was named by mistake: it stays.
func removePromptDir(s folder.State) error {
	dir := s.SystemPromptTmpDir
	if dir == "" {
		return nil
	}
	info, err := os.Lstat(dir)
	switch {
	case os.IsNotExist(err):
		return nil
	case err != nil:
		return fmt.Errorf("remove systemPromptTmpDir: %w", err)
	case !info.IsDir():
		return fmt.Errorf("systemPromptTmpDir %s is no folder, and stays", dir)
	}
	home, _ := os.UserHomeDir()
	for _, kept := range []string{s.Cwd, s.DB, s.LogPath, s.Inbox, home} {
		if kept == dir || strings.HasPrefix(kept, strings.TrimSuffix(dir, "/")+"/") {
			return fmt.Errorf("systemPromptTmpDir %s holds %s, and stays", dir, kept)
		}
	}
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("remove systemPromptTmpDir: %w", err)
	}
	return nil
}
