package session

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"
	"unicode/utf8"

	"heartbeat/internal/disk"
	"heartbeat/internal/hosting/folder"
	"heartbeat/internal/notify"
	"heartbeat/internal/words"
)

// log is the session's log: lines of the host, and the client's raw standard error. It is for
// people, so nothing depends on it.
type log struct {
	path string
	mu   sync.Mutex
	file *disk.File // nil if it cannot be written
	tail []byte     // the end of the client's standard error
}

// openLog opens the log of a session for appending. After an error there is no log.
func openLog(dir, id string) (*log, error) {
	l := &log{path: filepath.Join(dir, id+".log")}
	err := os.MkdirAll(dir, 0o755)
	if err == nil {
		l.file, _, err = disk.OpenAppend(l.path)
	}
	if err != nil {
		return l, fmt.Errorf("open the session's log: %w", err)
	}
	return l, nil
}

func (l *log) line(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.append([]byte("[babysitter] " + words.Line(text) + "\n"))
}

func (l *log) linef(format string, args ...any) { l.line(fmt.Sprintf(format, args...)) }

// Write adds what the client wrote to standard error.
func (l *log) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.append(b)
	l.tail = append(l.tail, b...)
	if extra := len(l.tail) - 4*folder.MaxStderr; extra > 0 {
		l.tail = append([]byte(nil), l.tail[extra:]...)
	}
	return len(b), nil
}

func (l *log) append(b []byte) {
	if l.file != nil {
		_, _ = l.file.Append(b) // a full disk does not end the session
	}
}

// stderr is the end of the client's standard error, at most [folder.MaxStderr] characters.
func (l *log) stderr() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	text := l.tail
	for len(text) > 0 && !utf8.RuneStart(text[0]) {
		text = text[1:]
	}
	runes := []rune(string(text))
	return string(runes[max(0, len(runes)-folder.MaxStderr):])
}

func (l *log) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file != nil {
		_ = l.file.Close() // only appended to
		l.file = nil
	}
}

// tellWait is how long a host stays at the session's end to notify a person.
const tellWait = 45 * time.Second

// tellEnd notifies a person of what the session left, and of its failure.
func (h *host) tellEnd(hurry <-chan struct{}, d Decision) {
	if d.State == folder.Failed {
		h.tells.Say(notify.Words{Reason: "session failed", Sentence: "the session " + h.Config.SessionID + " failed: " + d.Error})
	}
	ctx, cancel := withinUnless(hurry, tellWait)
	defer cancel()
	h.tells.Stop(ctx)
}
