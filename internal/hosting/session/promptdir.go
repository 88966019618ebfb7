package session

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"heartbeat/internal/disk"
	"heartbeat/internal/hosting/folder"
)

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
	if err := removeMarkLast(dir, promptMark(s)); err != nil {
		return fmt.Errorf("remove systemPromptTmpDir: %w", err)
	}
	return nil
}

// removeMarkLast removes a folder. After a kill what is left still has its mark.
func removeMarkLast(dir, mark string) error {
	names, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		if path := filepath.Join(dir, name.Name()); path != mark {
			if err := os.RemoveAll(path); err != nil { // it follows no links
				return err
			}
		}
	}
	return os.RemoveAll(dir)
}

// promptMark is the file by which a host marks the folder of the system prompt.
func promptMark(s folder.State) string {
	return filepath.Join(s.SystemPromptTmpDir, ".heartbeat-"+s.SessionID)
}

// markPromptDir lets a finisher remove the folder of the system prompt.
func markPromptDir(s folder.State) error {
	if info, err := os.Lstat(s.SystemPromptTmpDir); s.SystemPromptTmpDir == "" || err != nil || !info.IsDir() {
		return nil // there is nothing to remove
	}
	if err := disk.Touch(promptMark(s)); err != nil {
		return fmt.Errorf("systemPromptTmpDir cannot be marked as the session's own, and stays if this host is killed: %w", err)
	}
	return nil
}

// removeMarkedPromptDir is [removePromptDir] for a finisher. It has the path from the
// record, which the session's tools may have forged, so it removes only what the host
// has marked.
func removeMarkedPromptDir(s folder.State) error {
	if there, err := disk.Exists(s.SystemPromptTmpDir); s.SystemPromptTmpDir == "" || err == nil && !there {
		return nil
	}
	if marked, err := disk.Exists(promptMark(s)); err != nil || !marked {
		return fmt.Errorf("systemPromptTmpDir %s was not marked by the session's host, and stays", s.SystemPromptTmpDir)
	}
	return removePromptDir(s)
}

// clean removes the temporary files of a session, and the socket of a dead host.
func clean(f folder.Folder) error {
	if err := errors.Join(os.RemoveAll(f.TempDir()), disk.Remove(f.SocketPath())); err != nil { // it follows no links
		return fmt.Errorf("remove the session's temporary files: %w", err)
	}
	return nil
}
