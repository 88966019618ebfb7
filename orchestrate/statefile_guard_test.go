package orchestrate_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"heartbeat/orchestrate"
)

func TestOutOfIterations(t *testing.T) {
	assert.Contains(t, orchestrate.State{Iteration: 1, MaxIterations: 1}.Limit(), "has had its 1 iterations")
	assert.Empty(t, orchestrate.State{Iteration: 255, MaxIterations: 256}.Limit())
	assert.Empty(t, orchestrate.State{Iteration: 1 << 40}.Limit(), "0 is no limit")
}

func TestTimes(t *testing.T) {
	at := func(d time.Duration) string { return orchestrate.StateStamp(noon.Add(-d)) }
	ten := []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}
	for _, tt := range []struct {
		name string
		s    orchestrate.State
		want []int
	}{
		{"the fourth iteration", orchestrate.State{Iteration: 4, LastIterationAt: at(time.Minute)}, nil},
		{"the fifth", orchestrate.State{Iteration: 5, LastIterationAt: at(time.Minute)}, []int{60}},
		{"less than a second", orchestrate.State{Iteration: 5, LastIterationAt: at(0)}, nil},
		{"a clock set back", orchestrate.State{Iteration: 5, LastIterationAt: at(-time.Minute)}, nil},
		{"no beginning", orchestrate.State{Iteration: 5, IterationTimes: ten}, ten},
		{"the eleventh time", orchestrate.State{Iteration: 99, LastIterationAt: at(time.Minute), IterationTimes: ten}, append(ten[1:10:10], 60)},
	} {
		assert.Equal(t, tt.want, tt.s.Times(noon), tt.name)
	}
	assert.Equal(t, []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, ten, "what was given stays as it is")
}
