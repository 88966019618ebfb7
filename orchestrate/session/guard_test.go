package session_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"heartbeat/orchestrate/session"
)

func TestExhausted(t *testing.T) {
	assert.True(t, session.State{Iteration: 1, MaxIterations: 1}.Exhausted())
	assert.False(t, session.State{Iteration: 255, MaxIterations: 256}.Exhausted())
	assert.False(t, session.State{Iteration: 1 << 40}.Exhausted(), "0 is no limit")
}

func TestTimes(t *testing.T) {
	at := func(d time.Duration) string { return session.Stamp(noon.Add(-d)) }
	ten := []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}
	for _, tt := range []struct {
		name string
		s    session.State
		want []int
	}{
		{"the fourth iteration", session.State{Iteration: 4, LastIterationAt: at(time.Minute)}, nil},
		{"the fifth", session.State{Iteration: 5, LastIterationAt: at(time.Minute)}, []int{60}},
		{"less than a second", session.State{Iteration: 5, LastIterationAt: at(0)}, nil},
		{"a clock set back", session.State{Iteration: 5, LastIterationAt: at(-time.Minute)}, nil},
		{"no beginning", session.State{Iteration: 5, IterationTimes: ten}, ten},
		{"the eleventh time", session.State{Iteration: 99, LastIterationAt: at(time.Minute), IterationTimes: ten}, append(ten[1:10:10], 60)},
	} {
		assert.Equal(t, tt.want, tt.s.Times(noon), tt.name)
	}
	assert.Equal(t, []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, ten, "what was given stays as it is")
}

func TestTooFast(t *testing.T) {
	ten := func(n int) []int { return slices.Repeat([]int{n}, 10) }
	for _, tt := range []struct {
		times   []int
		minimum int
		want    bool
	}{
		{ten(15), 15, true},
		{append(ten(15)[:9:9], 16), 15, false},
		{ten(1)[:9], 15, false},
		{ten(1), 0, false},
		{ten(1), 1, true},
		{nil, 15, false},
	} {
		_, got := session.TooFast(tt.times, tt.minimum)
		assert.Equal(t, tt.want, got, "%v below %d", tt.times, tt.minimum)
	}
}

func TestProgress(t *testing.T) {
	var p session.Progress
	see := func(pending []string, event string) session.Progress {
		p = p.After(session.Fingerprint(pending, event))
		return p
	}
	assert.False(t, see([]string{"a", "b"}, "7").Stuck(1), "the first of its kind")
	assert.True(t, see([]string{"b", "a"}, "7").Stuck(1), "the order is nothing")
	assert.False(t, p.Stuck(2))
	assert.True(t, see([]string{"a", "b"}, "7").Stuck(2))
	assert.False(t, p.Stuck(0), "0 is never")
	assert.False(t, see([]string{"a", "b"}, "8").Stuck(1), "an event is progress")
	assert.False(t, see([]string{"a"}, "8").Stuck(1), "so is a result")
	assert.NotEqual(t, session.Fingerprint([]string{"a", "b"}, ""), session.Fingerprint([]string{"ab"}, ""))
	assert.NotEqual(t, session.Fingerprint([]string{`a""b`}, ""), session.Fingerprint([]string{"a", "b"}, ""))
}
