package managed

import (
	"sync"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
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
