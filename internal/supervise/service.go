package supervise

import (
	"cmp"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"

	"heartbeat/internal/disk"
	"heartbeat/internal/words"
	recovery "heartbeat/recover"
)

// statusEvery is the shortest time between two status messages.
const statusEvery = 2 * time.Second

// service reports to a service manager (sd_notify(3)), if there is one. Errors are ignored, since
// nobody could act on them.
type service struct {
	status        func() string // the queue in a few words
	isProgressing func() bool   // whether the work makes progress
	news          atomic.Bool   // the status is to be sent again
	done          chan struct{}
	stopped       sync.WaitGroup
	once          sync.Once
}

func newService(status func() string, goesOn func() bool) *service {
	s := &service{status: status, isProgressing: goesOn, done: make(chan struct{})}
	s.news.Store(true)
	if asked, _ := daemon.SdNotify(false, "STATUS=waiting for the first session"); asked {
		watchdog, _ := daemon.SdWatchdogEnabled(false) // 0 if unknown
		s.stopped.Go(func() { s.run(watchdog) })
	}
	return s
}

// ready reports that the first session has started.
func (s *service) ready() {
	s.once.Do(func() { _, _ = daemon.SdNotify(false, daemon.SdNotifyReady) })
}

// startTime is how long a start may take after a rest, and endTime an end after --drain-timeout, without its --grace.
const startTime, endTime = 2 * time.Minute, 30 * time.Second

// extendTimeout makes the manager wait at least that long for the start or the stop under way.
func extendTimeout(by time.Duration) {
	_, _ = daemon.SdNotify(false, fmt.Sprintf("EXTEND_TIMEOUT_USEC=%d", by.Microseconds()))
}

// end reports the end of the work, and why. A drained inbox that needed no session counts as ready first.
func (s *service) end(e *ending) {
	if e.reason == Drained {
		s.ready()
	}
	close(s.done)
	s.stopped.Wait()
	_, _ = daemon.SdNotify(false, daemon.SdNotifyStopping+"\nSTATUS="+words.Line(e.lastWords()))
}

// run sends the status when there is news, and feeds the watchdog, if asked for, while the work makes progress.
func (s *service) run(watchdog time.Duration) {
	for look := time.Tick(min(statusEvery, cmp.Or(watchdog/2, statusEvery))); ; {
		if s.news.Swap(false) {
			_, _ = daemon.SdNotify(false, "STATUS="+s.status())
		}
		if watchdog > 0 && s.isProgressing() {
			_, _ = daemon.SdNotify(false, daemon.SdNotifyWatchdog)
		}
		select {
		case <-s.done:
			return
		case <-look:
		}
	}
}

func (r *run) status() string {
	last := r.follow.last()
	text := fmt.Sprintf("%d queued, %d answered", countQueued(r.box), last.answered)
	if d := last.inFlight; d != nil {
		text += ", one in flight since " + d.DeliveredAt.Local().Format(time.TimeOnly)
	}
	if s := r.current.Load(); s == nil {
		text += ", no session: " + cmp.Or(r.sign.text(), "it begins")
	} else if s.asking() {
		text += ", waiting for a person"
	}
	return text
}

// isProgressing reports whether the work makes progress: a session with an entry prints, unless it waits
// for a person or for its tasks.
func (r *run) isProgressing() bool {
	s := r.current.Load()
	if s == nil {
		return true
	}
	if now := s.drawn.Load(); now != s.watched {
		s.watched = now
		return true
	}
	d := r.follow.last().inFlight
	return d == nil || s.asking() || recovery.EvidenceOf(d).Held
}

// sign tells others what the launcher is doing, in the file of its lock. Line 1 is its process ID,
// line 2 a text for people.
type sign struct {
	mu   sync.Mutex
	lock *disk.Lock
	said string
	// Lines 3 to 5: the socket to attach to, whether the session waits for an answer, and whether
	// something keeps sessions from working.
	socket, waits, troubled string
}

// setLock sets the lock whose file holds the sign; nil for none.
func (s *sign) setLock(lock *disk.Lock) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lock = lock
}

// maxSaid bounds the text in bytes; readers bound their reads as well.
const maxSaid = 2000

func (s *sign) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.said
}

// say writes only a new text: each write changes the inbox's directory and wakes everybody who follows it.
func (s *sign) say(text string, troubled ...string) {
	text = words.Sentence(strings.ToValidUTF8(text[:min(len(text), maxSaid)], ""))
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lock == nil || text == s.said {
		return
	}
	s.said, s.troubled = text, strings.Join(troubled, "")
	_ = s.lock.Sign(fmt.Sprintf("%d\n%s\n%s\n%s\n%s\n", os.Getpid(), text, s.socket, s.waits, s.troubled)) // at worst heartbeat stop waits longer
}

// setSocket publishes the socket to attach to ("" for none), and whether a session that asks waits for an answer.
func (s *sign) setSocket(socket string, waits bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.socket, s.waits = socket, ""
	if waits && socket != "" {
		s.waits = "waits"
	}
}
