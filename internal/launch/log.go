package launch

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"golang.org/x/sys/unix"
	"gopkg.in/natefinch/lumberjack.v2"

	"heartbeat/internal/words"
)

// log tells of each thing that happens, in one line.
type log struct {
	*lineQueue
	file *lumberjack.Logger // nil without --log
}

// logRoom is how many lines may wait for a writer that is slow.
const logRoom = 4096

// oldLogs is how many files are kept beside the one that is written.
const oldLogs = 5

// openLog writes the lines to a writer, nil for none, and to a file, "" for none, which
// is renamed and begun anew at a size in MiB.
func openLog(shown io.Writer, path string, size int) (*log, error) {
	l := &log{}
	var to writers
	if shown != nil {
		to = append(to, shown)
	}
	if path != "" {
		if err := checkLog(path); err != nil {
			return nil, err
		}
		l.file = &lumberjack.Logger{Filename: path, MaxSize: size, MaxBackups: oldLogs}
		to = append(to, l.file)
	}
	l.lineQueue = newLineQueue(to, logRoom)
	return l, nil
}

// checkLog makes the file, which only this user can read.
func checkLog(path string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0o600)
	if err == nil {
		var info fs.FileInfo
		if info, err = f.Stat(); err == nil && !info.Mode().IsRegular() {
			err = &fs.PathError{Op: "open", Path: path, Err: errors.New("it is not a regular file")}
		}
		err = errors.Join(err, f.Close())
	}
	if errors.Is(err, unix.ELOOP) {
		err = &fs.PathError{Op: "open", Path: path, Err: errors.New("it is a symbolic link")}
	}
	if err != nil {
		return fmt.Errorf("log: %w: name another file with --log", err)
	}
	return nil
}

func (l *log) say(at time.Time, text string) {
	l.put(at.Local().Format(time.RFC3339) + " " + words.Line(text) + "\n")
}

func (l *log) finish() {
	l.lineQueue.finish()
	if l.file != nil {
		_ = l.file.Close() // what it took is written
	}
}

// writers get all that is written, whether or not others of them fail.
type writers []io.Writer

func (all writers) Write(b []byte) (int, error) {
	for _, w := range all {
		_, _ = w.Write(b) // nobody is left to tell
	}
	return len(b), nil
}
