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

// statusEvery is how often the status is told, where it has changed.
const statusEvery = 2 * time.Second

// service tells a service manager how the work goes (sd_notify(3)), if one asks for it.
// Errors are ignored, since nobody could act on them.
type service struct {
	status  func() string // the queue in a few words
	goesOn  func() bool   // whether the work does
	news    atomic.Bool
	done    chan struct{}
	stopped sync.WaitGroup
	once    sync.Once
}

// announce begins to tell.
func announce(status func() string, goesOn func() bool) *service {
	s := &service{status: status, goesOn: goesOn, done: make(chan struct{})}
	s.news.Store(true)
	if asked, _ := daemon.SdNotify(false, "STATUS=waiting for the first session"); asked {
		watchdog, _ := daemon.SdWatchdogEnabled(false) // 0 where that cannot be known, too
		s.stopped.Go(func() { s.run(watchdog) })
	}
	return s
}

// ready tells that the first session has started.
func (s *service) ready() {
	s.once.Do(func() { _, _ = daemon.SdNotify(false, daemon.SdNotifyReady) })
}

// startTime is how long a start may take beyond a rest.
const startTime = 2 * time.Minute

// extend tells that the first session comes later, after a rest.
func (s *service) extend(rest time.Duration) {
	_, _ = daemon.SdNotify(false, fmt.Sprintf("EXTEND_TIMEOUT_USEC=%d", (rest+startTime).Microseconds()))
}

// poke asks for another look at the status.
func (s *service) poke() { s.news.Store(true) }

// end tells that the work is over. Where no session was needed, it counts as ready first.
func (s *service) end(drained bool) {
	if drained {
		s.ready()
	}
	close(s.done)
	s.stopped.Wait()
	_, _ = daemon.SdNotify(false, daemon.SdNotifyStopping)
}

// run tells the status where there is news, and a watchdog that asks so often that the work goes
// on, as long as it does.
func (s *service) run(watchdog time.Duration) {
	look := time.NewTicker(min(statusEvery, cmp.Or(watchdog/2, statusEvery)))
	defer look.Stop()
	for {
		if s.news.Swap(false) {
			_, _ = daemon.SdNotify(false, "STATUS="+s.status())
		}
		if watchdog > 0 && s.goesOn() {
			_, _ = daemon.SdNotify(false, daemon.SdNotifyWatchdog)
		}
		select {
		case <-s.done:
			return
		case <-look.C:
		}
	}
}

// status is the queue in a few words.
func (r *run) status() string {
	answered, flying := r.follow.counts()
	text := fmt.Sprintf("%d queued, %d answered", countQueued(r.box), answered)
	if flying != nil {
		text += ", one in flight since " + flying.DeliveredAt.Local().Format(time.TimeOnly)
	}
	if s := r.current.Load(); s == nil {
		text += ", no session: " + r.sign.text()
	} else if s.asking() {
		text += ", waiting for a person"
	}
	return text
}

// goesOn reports whether the work goes on: a session that has an entry prints, unless it
// waits for a person or for its tasks.
func (r *run) goesOn() bool {
	s := r.current.Load()
	if s == nil {
		return true
	}
	if now := s.drawn.Load(); now != s.watched {
		s.watched = now
		return true
	}
	_, flying := r.follow.counts()
	return flying == nil || s.asking() || recovery.EvidenceOf(flying).Held
}

// sign tells others what the launcher is doing, in the file of its lock: the number of
// its process in the first line, a text for people in the second.
type sign struct {
	mu   sync.Mutex
	lock *disk.Lock
	said string
	// Further lines: where it is reached, whether its session waits for an answer, and whether
	// something keeps sessions from working.
	socket, waits, troubled string
}

// in has the file of a lock hold the sign.
func (s *sign) in(lock *disk.Lock) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lock = lock
}

// maxSaid is how many bytes of a text the file gets, which others read with a bound.
const maxSaid = 2000

func (s *sign) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.said
}

// say writes the file only if the text is new: each write changes the inbox's directory,
// which wakes everybody who follows it.
func (s *sign) say(text string, troubled ...string) {
	text = words.Sentence(strings.ToValidUTF8(text[:min(len(text), maxSaid)], ""))
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lock == nil || text == s.said {
		return
	}
	s.said, s.troubled = text, strings.Join(troubled, "")
	_ = s.lock.Sign(fmt.Sprintf("%d\n%s\n%s\n%s\n%s\n", os.Getpid(), text, s.socket, s.waits, s.troubled)) // only people read it
}
