package managed

import (
	"fmt"
	"sync"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"

	recovery "heartbeat/recover"
)

// statusEvery bounds how often the queue is counted for the status.
const statusEvery = 2 * time.Second

// service tells a service manager how the work goes (sd_notify(3)), where one asks
// for that. Its errors are nobody's to act on.
type service struct {
	run     *run
	news    chan struct{}
	done    chan struct{}
	stopped sync.WaitGroup
	once    sync.Once
}

// announce begins to tell.
func announce(r *run) *service {
	s := &service{run: r, news: make(chan struct{}, 1), done: make(chan struct{})}
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

// poke says that there may be something to tell.
func (s *service) poke() {
	select {
	case s.news <- struct{}{}:
	default:
	}
}

// end tells that all is done. Where nothing was, it was ready for that.
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
		_, _ = daemon.SdNotify(false, "STATUS="+s.run.status())
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

// status is the queue in a few words.
func (r *run) status() string {
	answered, flying := r.follow.counts()
	text := fmt.Sprintf("%d queued, %d answered", r.queued(), answered)
	if flying != nil {
		text += ", one in flight since " + flying.DeliveredAt.Local().Format(time.TimeOnly)
	}
	if s := r.current.Load(); s == nil {
		text += ", no session"
	} else if s.asks.Load() {
		text += ", waiting for a person"
	}
	return text
}

// watchdog tells, again and again, that the work goes on, as long as it does.
func (s *service) watchdog(every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		if s.run.goesOn() {
			_, _ = daemon.SdNotify(false, daemon.SdNotifyWatchdog)
		}
		select {
		case <-s.done:
			return
		case <-tick.C:
		}
	}
}

// goesOn reports whether the work does: a session that has an entry prints, unless
// it waits for a person.
func (r *run) goesOn() bool {
	s := r.current.Load()
	if s == nil || s.printed.Swap(false) {
		return true
	}
	_, flying := r.follow.counts()
	return flying == nil || s.asks.Load() || recovery.EvidenceOf(flying).Held
}
