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

// lines are the log: one line for each thing that happens.
type lines struct {
	*slow
	file *lumberjack.Logger // nil without --log
}

// linesRoom is how many lines wait for who does not take them.
const linesRoom = 4096

// logsKept is how many files are kept beside the one that is written.
const logsKept = 5

// openLines has them go to where they are shown, nil for nowhere, and to --log.
func (m *manage) openLines(shown io.Writer) (*lines, error) {
	l := &lines{}
	var to []io.Writer
	if shown != nil {
		to = append(to, shown)
	}
	if m.log != "" {
		if err := checkLog(m.log); err != nil {
			return nil, err
		}
		l.file = &lumberjack.Logger{Filename: m.log, MaxSize: m.logSize, MaxBackups: logsKept}
		to = append(to, l.file)
	}
	l.slow = newSlow(each(to), linesRoom)
	return l, nil
}

// checkLog makes the file, for this user alone.
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

func (l *lines) say(at time.Time, text string) {
	l.put(at.Local().Format(time.RFC3339) + " " + words.Line(text) + "\n")
}

func (l *lines) finish() {
	l.slow.finish()
	if l.file != nil {
		_ = l.file.Close() // what it took is written
	}
}

// each writes to all, also behind one that fails.
type each []io.Writer

func (e each) Write(b []byte) (int, error) {
	for _, w := range e {
		_, _ = w.Write(b) // nobody is left to tell
	}
	return len(b), nil
}
