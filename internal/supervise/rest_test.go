package supervise

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// fakeClocks are clocks of which a test says what they show.
type fakeClocks struct {
	wall time.Time
	boot time.Duration
}

func (f *fakeClocks) clocks() clocks {
	return clocks{func() time.Time { return f.wall }, func() int64 { return int64(f.boot) }}
}

func (f *fakeClocks) pass(d time.Duration) {
	f.wall, f.boot = f.wall.Add(d), f.boot+d
}

func TestAlarm(t *testing.T) {
	begin := func(rest time.Duration) (*fakeClocks, alarm) {
		f := &fakeClocks{wall: time.Date(2026, 11, 25, 23, 0, 0, 0, time.UTC), boot: time.Hour}
		return f, f.clocks().alarm(rest)
	}
	t.Run("in time", func(t *testing.T) {
		f, a := begin(40 * time.Second)
		var looks []time.Duration
		for next := a.next(); next > 0; next = a.next() {
			looks = append(looks, next)
			f.pass(next)
		}
		assert.Equal(t, []time.Duration{15 * time.Second, 15 * time.Second, 10 * time.Second}, looks)
	})
	t.Run("the machine slept", func(t *testing.T) {
		f, a := begin(4 * time.Hour)
		f.pass(alarmEvery)
		assert.Equal(t, alarmEvery, a.next())
		f.pass(8 * time.Hour) // while a timer stood still
		assert.Zero(t, a.next())
	})
	t.Run("it slept, and the end is still to come", func(t *testing.T) {
		f, a := begin(4 * time.Hour)
		f.pass(4*time.Hour - 5*time.Second)
		assert.Equal(t, 5*time.Second, a.next())
	})
	for name, set := range map[string]time.Duration{"forward": time.Hour, "back": -time.Hour} {
		t.Run("the clock is set "+name, func(t *testing.T) {
			f, a := begin(4 * time.Hour)
			f.wall = f.wall.Add(set)
			assert.Zero(t, a.next(), "what is waited for may end by that clock")
		})
	}
	t.Run("the clock is adjusted", func(t *testing.T) {
		f, a := begin(4 * time.Hour)
		f.wall = f.wall.Add(time.Second)
		assert.Equal(t, alarmEvery, a.next())
	})
	t.Run("nothing to wait for", func(t *testing.T) {
		_, a := begin(-time.Second)
		assert.Zero(t, a.next())
	})
}

// A rest ends soon after the machine wakes up, though its own timer stood still meanwhile.
func TestRestOverASleep(t *testing.T) {
	r, _ := newRun(t, Drain)
	r.SettingsDir, r.stop.asked, r.follow = "its owner's", t.Context(), &follower{changed: make(chan struct{})}
	var slept, looks atomic.Int64
	every, real := alarmEvery, systemClocks
	defer func() { alarmEvery, systemClocks = every, real }()
	alarmEvery, systemClocks = time.Millisecond, clocks{
		func() time.Time { looks.Add(1); return real.wall().Add(time.Duration(slept.Load())) },
		func() int64 { return real.boot() + slept.Load() },
	}
	over := make(chan bool)
	rest := func() {
		r.sleep(4*time.Hour, r.follow.changed)
		over <- true
	}
	go rest()
	for looks.Load() < 5 {
		select {
		case <-over:
			t.Fatal("it ended before the machine slept")
		default:
		}
	}
	slept.Store(int64(8 * time.Hour))
	<-over

	ctx, cancel := context.WithCancel(t.Context())
	r.stop.asked = ctx
	go rest()
	cancel()
	<-over // a signal ends it
}
