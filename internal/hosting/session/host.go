package session

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"heartbeat/internal/disk"
	"heartbeat/internal/hosting/attach"
	"heartbeat/internal/hosting/folder"
	"heartbeat/internal/hosting/proxy"
	"heartbeat/internal/hosting/queue"
	"heartbeat/internal/hosting/stream"
	"heartbeat/internal/machine/guardian"
	"heartbeat/internal/machine/signals"
	"heartbeat/internal/notify"
	"heartbeat/internal/words"
)

type host struct {
	Options
	conclusion
	claude     string // the client's absolute path
	guard      *guardian.Guardian
	signals    *signals.Caught
	store      *stream.Transcript
	proxy      *proxy.Proxy
	queue      *queue.Queue
	server     *attach.Server
	stopBeats  func(context.Context) // ends the reports that the session runs; nil before the first
	endRequest *request
	drained    drain
	notifier   notify.Helper
	stalled    atomic.Bool // the session in a terminal is ended because it stalled
	progress   struct {    // the last progress, by the monotonic clock: the wall clock may be set, and runs during sleep
		of    *time.Time // LastProgressAt of the state
		since time.Time
	}

	mu    sync.Mutex // taken after the record's mutex, never before
	tally stream.Tally

	sending sync.Mutex
	closed  bool // the session takes no more entries

	unsettled *queue.Exit // of a client whose entry could not be settled on a full disk, nil for none
}

// record is the session's state, in memory and on disk, and its log.
type record struct {
	lock  *folder.Lock
	log   *log
	mu    sync.Mutex
	state folder.State
	saved time.Time
	err   error // of the last write
}

func (r *record) change(f func(s *folder.State)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f(&r.state)
	r.save()
}

// note changes the state, and writes it if the last write is a second old. A kill may lose the change.
func (r *record) note(f func(s *folder.State)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f(&r.state)
	if time.Since(r.saved) >= time.Second {
		r.save()
	}
}

func (r *record) save() {
	r.saved = time.Now()
	r.err = r.lock.Write(&r.state)
}

func (r *record) failure() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}

func (r *record) snapshot() folder.State {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.state
	s.Warnings = slices.Clone(s.Warnings)
	return s
}

// warn adds a warning to the log and the record, once.
func (r *record) warn(text string) {
	if text == "" {
		return
	}
	fresh := false
	r.change(func(s *folder.State) { fresh = s.Warn(text) })
	if fresh {
		r.log.line("warning: " + text)
	}
}

// log is the session's log: lines of the host, and the client's raw standard error. Nothing depends on it.
type log struct {
	path string
	mu   sync.Mutex
	file *disk.File // nil if it cannot be written
	tail words.Tail // the end of the client's standard error
	room int        // bytes left for the client's standard error, negative once some was left out
}

// mostStderr is the most bytes of the client's standard error in a log: a session may run for weeks.
const mostStderr = 64 << 20

// openLog opens the log of a session for appending. After an error the log drops its lines.
func openLog(dir, id string) (*log, error) {
	l := &log{path: filepath.Join(dir, id+".log"), room: mostStderr}
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

// Write appends what the client wrote to standard error.
func (l *log) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	before := l.room
	switch l.room -= len(b); {
	case l.room >= 0:
		l.append(b)
	case before >= 0:
		l.append([]byte("\n[babysitter] the client has written over 64 MiB to its standard error: the rest is left out\n"))
	}
	l.tail.Most = utf8.UTFMax * (folder.MaxStderr + 1) // the first character may be cut
	return l.tail.Write(b)
}

func (l *log) append(b []byte) {
	if l.file != nil {
		_, _ = l.file.Append(b) // a full disk does not end the session
	}
}

// stderr returns the end of the client's standard error, at most [folder.MaxStderr] characters.
func (l *log) stderr() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	runes := []rune(l.tail.String())
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
