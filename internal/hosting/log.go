package hosting

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"heartbeat/internal/hosting/config"
)

// logFile is a session's log, which takes what its host prints.
type logFile struct {
	path    string
	file    *os.File
	madeDir bool
}

// openLog opens the log that the config names for a session, and makes its folder.
func openLog(c *config.Config) (*logFile, error) {
	l := &logFile{path: filepath.Join(c.LogDir, c.SessionID+".log")}
	if _, err := os.Stat(c.LogDir); errors.Is(err, fs.ErrNotExist) {
		l.madeDir = true
	}
	if err := os.MkdirAll(c.LogDir, 0o755); err != nil {
		return nil, &config.Problem{Path: "logDir", Reason: "cannot be made: " + err.Error()}
	}
	file, err := os.OpenFile(l.path, os.O_WRONLY|os.O_APPEND|os.O_CREATE|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0o600)
	if err == nil {
		var info fs.FileInfo
		if info, err = file.Stat(); err == nil && !info.Mode().IsRegular() {
			err = errors.Join(errors.New(l.path+" is not a regular file"), file.Close())
		}
	}
	if err != nil {
		return nil, &config.Problem{Path: "logDir", Reason: "holds no file that can be appended to: " + err.Error()}
	}
	l.file = file
	return l, nil
}

// close closes the file here.
func (l *logFile) close() { _ = l.file.Close() } // nothing was written here

// removeEmpty removes the log of a session that never was, and its folder if it was
// made for it.
func (l *logFile) removeEmpty() {
	if info, err := os.Lstat(l.path); err != nil || info.Size() > 0 || !info.Mode().IsRegular() {
		return
	}
	if os.Remove(l.path) == nil && l.madeDir {
		_ = os.Remove(filepath.Dir(l.path)) // others may have put files into it
	}
}
