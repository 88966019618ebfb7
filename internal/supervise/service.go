package supervise

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"

	"heartbeat/internal/disk"
	"heartbeat/internal/words"
	recovery "heartbeat/recover"
)

// statusEvery bounds how often the queue is counted for the status.
const statusEvery = 2 * time.Second

// service tells a service manager how the work goes (sd_notify(3)), if one asks for it.
// Errors are ignored, since nobody could act on them.
type service struct {
	status  func() string // the queue in a few words
	goesOn  func() bool   // whether the work does
	news    chan struct{}
	done    chan struct{}
	stopped sync.WaitGroup
	once    sync.Once
}

// announce begins to tell.
func announce(status func() string, goesOn func() bool) *service {
	s := &service{status: status, goesOn: goesOn, news: make(chan struct{}, 1), done: make(chan struct{})}
	if asked, _ := daemon.SdNotify(false, "STATUS=waiting for the first session"); !asked {
		return s
	}
	s.stopped.Go(s.tellStatus)
	if every, err := daemon.SdWatchdogEnabled(false); err == nil && every > 0 {
		s.stopped.Go(func() { s.watchdog(every / 2) })
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
func (s *service) poke() {
	select {
	case s.news <- struct{}{}:
	default:
	}
}

// end tells that the work is over. Where no session was needed, it counts as ready first.
func (s *service) end(drained bool) {
	if drained {
		s.ready()
	}
	close(s.done)
	s.stopped.Wait()
	_, _ = daemon.SdNotify(false, daemon.SdNotifyStopping)
}

func (s *service) tellStatus() {
	for {
		_, _ = daemon.SdNotify(false, "STATUS="+s.status())
		select {
		case <-s.done:
			return
		case <-time.After(statusEvery):
		}
		select {
		case <-s.done:
			return
		case <-s.news:
		}
	}
}

// watchdog tells regularly that the work goes on, as long as it does.
func (s *service) watchdog(every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		if s.goesOn() {
			_, _ = daemon.SdNotify(false, daemon.SdNotifyWatchdog)
		}
		select {
		case <-s.done:
			return
		case <-tick.C:
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
	if s == nil || s.printed.Swap(false) {
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
