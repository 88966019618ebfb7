package session

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"heartbeat/internal/disk"
	"heartbeat/internal/hosting/folder"
	"heartbeat/internal/notify"
	"heartbeat/internal/words"
)

// log is the session's log: lines of the host, and raw what the client writes to
// standard error. It is for people, so nothing depends on it.
type log struct {
	path string
	mu   sync.Mutex
	file *disk.File // nil if it cannot be written
	tail []byte     // the end of the client's standard error
}

// openLog opens the log of a session for appending. The error says that there is none.
func openLog(dir, id string) (*log, error) {
	l := &log{path: filepath.Join(dir, id+".log")}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return l, fmt.Errorf("open the session's log: %w", err)
	}
	f, _, err := disk.OpenAppend(l.path)
	if err != nil {
		return l, fmt.Errorf("open the session's log: %w", err)
	}
	l.file = f
	return l, nil
}

// line adds a line of the host.
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

// stderr is the end of the client's standard error, at most [folder.MaxStderr]
// characters.
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
		_ = l.file.Close() // it was only appended to
		l.file = nil
	}
}

// tellWait is how long a host stays, at the session's end, until a person was told of
// what needs one.
const tellWait = 45 * time.Second

// telling has a person told of what happens in the session's inbox. The process that
// tells is started before this one adopts others.
type telling struct {
	helper *notify.Helper      // nil where nobody is told
	log    atomic.Pointer[log] // nil while there is none
}

func newTelling(o notify.Options) *telling {
	t := &telling{}
	var err error
	if t.helper, err = notify.StartHelper(o, t.note); err != nil {
		t.note(err.Error())
	}
	return t
}

func (t *telling) note(text string) {
	if l := t.log.Load(); l != nil {
		l.line(text)
	}
}

// follow begins to tell of the session's inbox.
func (h *host) follow(inbox string) {
	h.telling.log.Store(h.log)
	h.telling.helper.Follow(inbox)
}

// stop ends the telling of a session that did not begin.
func (t *telling) stop() {
	ctx, cancel := within(time.Second)
	defer cancel()
	t.helper.Stop(ctx)
}

// tellEnd has a person told of what the session left, and of its failure.
func (h *host) tellEnd(hurry <-chan struct{}, d Decision) {
	if d.State == folder.Failed {
		h.telling.helper.Say(notify.Words{Reason: "session failed", Sentence: "the session " + h.Config.SessionID + " failed: " + d.Error})
	}
	ctx, cancel := withinUnless(hurry, tellWait)
	defer cancel()
	h.telling.helper.Stop(ctx)
}
