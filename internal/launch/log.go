package launch

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
	"gopkg.in/natefinch/lumberjack.v2"

	"heartbeat/internal/supervise/terminal"
	"heartbeat/internal/words"
)

// lineQueue writes lines without blocking its callers: the writer may be a full pipe that nobody reads.
type lineQueue struct {
	lines chan string
	done  chan struct{}
	lost  atomic.Int64
	ended sync.Once
}

// finishPatience is how long the last lines may take to be written.
const finishPatience = time.Second

func newLineQueue(to io.Writer, room int) *lineQueue {
	q := &lineQueue{lines: make(chan string, room), done: make(chan struct{})}
	go func() {
		defer close(q.done)
		for line := range q.lines {
			_, _ = io.WriteString(to, line) // nobody else could read of an error
			if n := q.lost.Swap(0); n > 0 {
				_, _ = fmt.Fprintf(to, "(%d lines are missing here: they were not taken in time)\n", n)
			}
		}
	}()
	return q
}

func (q *lineQueue) put(line string) {
	select {
	case q.lines <- line:
	default:
		q.lost.Add(1)
	}
}

// finish writes out the queue, for at most finishPatience.
func (q *lineQueue) finish() {
	q.ended.Do(func() { close(q.lines) })
	select {
	case <-q.done:
	case <-time.After(finishPatience):
	}
}

// messages writes sentences to stderr without blocking: stderr may be the same full pipe as stdout.
type messages struct {
	*lineQueue
	newline string
}

const messagesRoom = 64

// newMessages returns messages to a file. On a terminal they wait while a session draws on the console's alternate screen.
func newMessages(to *os.File, console *terminal.Console) *messages {
	if !term.IsTerminal(int(to.Fd())) {
		return &messages{newLineQueue(to, messagesRoom), "\n"}
	}
	return &messages{newLineQueue(console.Beside(to), messagesRoom), "\r\n"} // the terminal may be raw
}

func (m *messages) redirect(to io.Writer) {
	m.finish()
	m.lineQueue = newLineQueue(to, messagesRoom)
}

// Write queues b as one sentence.
func (m *messages) Write(b []byte) (int, error) {
	m.put(string(b))
	return len(b), nil
}

func (m *messages) say(format string, args ...any) {
	text := words.Plain(strings.TrimRight(fmt.Sprintf(format, args...), "\n"))
	m.put(CommandName + ": " + strings.ReplaceAll(text, "\n", m.newline) + m.newline)
}

type log struct {
	*lineQueue
	file *logFile // nil without --log
}

// logRoom is how many lines may wait for a slow writer.
const logRoom = 4096

const (
	logSize = 10 // MiB
	oldLogs = 5  // kept beside the current one
)

// openLog returns a log to shown (nil for none) and to the file at path ("" for none), which is rotated at
// logSize. trouble gets an error when the file's name cannot be followed.
func openLog(shown io.Writer, path string, trouble func(error)) (*log, error) {
	l := &log{}
	var to writers
	if shown != nil {
		to = append(to, shown)
	}
	if path != "" {
		if err := checkLog(path); err != nil {
			return nil, err
		}
		l.file = &logFile{Logger: lumberjack.Logger{Filename: path, MaxSize: logSize, MaxBackups: oldLogs}, trouble: trouble}
		to = append(to, l.file)
	}
	l.lineQueue = newLineQueue(to, logRoom)
	return l, nil
}

// logFile follows its name: after another program has renamed the file (logrotate), lines go to a
// new file of that name, or still to the old file if the new one cannot be written.
type logFile struct {
	lumberjack.Logger
	trouble     func(error)
	lastTrouble string // the last error of following the name
}

// Write writes one line.
func (f *logFile) Write(line []byte) (int, error) {
	text, err := "", checkLog(f.Filename)
	if err == nil {
		err = f.Close() // the next write opens the name again
	}
	if err != nil {
		text = err.Error()
	}
	if text != "" && text != f.lastTrouble {
		f.trouble(err)
	}
	f.lastTrouble = text
	return f.Logger.Write(line)
}

// checkLog makes a missing file, readable by this user only, and refuses a link and what is no regular file.
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
		_ = l.file.Close() // nothing is buffered
	}
}

// writers writes to each writer, even if others fail, which [io.MultiWriter] does not.
type writers []io.Writer

func (all writers) Write(b []byte) (int, error) {
	for _, w := range all {
		_, _ = w.Write(b) // nobody could read of an error
	}
	return len(b), nil
}
