package session

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"heartbeat/internal/hosting/attach"
	"heartbeat/internal/hosting/folder"
	"heartbeat/internal/hosting/process"
	"heartbeat/internal/hosting/proxy"
	"heartbeat/internal/hosting/queue"
	"heartbeat/internal/hosting/stream"
	"heartbeat/internal/machine/guardian"
	"heartbeat/internal/machine/signals"
	"heartbeat/internal/notify"
)

type host struct {
	Options
	conclusion
	claude  string // the client's absolute path
	guard   *guardian.Guardian
	signals *signals.Taken
	store   *stream.Transcript
	proxy   *proxy.Proxy
	queue   *queue.Queue
	server  *attach.Server
	report  reporter
	asked   *request
	drained drain
	tells   notify.Helper // notifies a person, if there is a command for that
	stalled atomic.Bool   // the session in a terminal is ended because it stalled

	mu    sync.Mutex // taken after the record's mutex, never before
	tally stream.Tally
	live  *process.Process // the running client, nil between two

	sending sync.Mutex
	over    bool // the session takes no more entries

	unsettled func() error // settles what a client left, if that failed before
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

// note changes the state, and writes it if the last write is a second old. A kill may lose what was
// only noted.
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
	if r.lock.Retaken() && addWarning(&r.state, "the session's folder, or its lock, was removed while it was hosted, and made again") {
		r.err = r.lock.Write(&r.state)
	}
}

// failure is the error of the last write of the state, nil for none.
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

// warn adds a warning to log, status and report, once.
func (r *record) warn(text string) {
	if text == "" {
		return
	}
	fresh := false
	r.change(func(s *folder.State) { fresh = addWarning(s, text) })
	if fresh {
		r.log.line("warning: " + text)
	}
}

func addWarning(s *folder.State, text string) (fresh bool) {
	if text == "" || slices.Contains(s.Warnings, text) || len(s.Warnings) >= folder.MaxWarnings {
		return false
	}
	s.Warnings = append(s.Warnings, text)
	return true
}

// within returns a context that ends after a time.
func within(d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), d)
}
