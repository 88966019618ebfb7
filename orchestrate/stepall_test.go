package orchestrate_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/orchestrate"
)

var soon, later = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2030, 1, 2, 0, 0, 0, 0, time.UTC)

// steps gives each of several runs the report or the error of its step.
type steps struct {
	bridges []*orchestrate.Bridge
	results map[*orchestrate.Bridge]any
	stepped []string // the runs whose step was taken, in order
}

func newSteps(results ...any) *steps {
	s := &steps{results: map[*orchestrate.Bridge]any{}}
	for _, r := range results {
		b := &orchestrate.Bridge{}
		s.bridges, s.results[b] = append(s.bridges, b), r
	}
	return s
}

func (s *steps) take(_ context.Context, b *orchestrate.Bridge) (orchestrate.Report, error) {
	switch r := s.results[b].(type) {
	case orchestrate.Report:
		s.stepped = append(s.stepped, r.Run)
		return r, nil
	case error:
		return orchestrate.Report{}, r
	}
	panic("neither a report nor an error")
}

func TestStepAllSumsUp(t *testing.T) {
	for name, c := range map[string]struct {
		reports    []any
		unfinished []int // by their place among the reports
		want       orchestrate.Outcome
	}{
		"no runs": {},
		"an entry was appended": {
			[]any{orchestrate.Report{Run: "a", Done: true}, orchestrate.Report{Run: "b", Queued: []string{"b/e1"}}},
			[]int{1}, orchestrate.Outcome{Queued: true, Waiting: true},
		},
		"an entry waits": {
			[]any{orchestrate.Report{Run: "a", Waits: 2}}, []int{0}, orchestrate.Outcome{Waiting: true},
		},
		"the first sleep counts": {
			[]any{orchestrate.Report{Run: "a", NotBefore: &later}, orchestrate.Report{Run: "b", NotBefore: &soon}, orchestrate.Report{Run: "c"}},
			[]int{0, 1, 2}, orchestrate.Outcome{NotBefore: soon},
		},
		"a run that cannot continue does not wake anybody": {
			[]any{orchestrate.Report{Run: "a", NotBefore: &soon, Guard: "no"}, orchestrate.Report{Run: "b", NotBefore: &later}},
			[]int{0, 1}, orchestrate.Outcome{NotBefore: later},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSteps(c.reports...)
			got, err := orchestrate.StepAll(t.Context(), s.bridges, s.take)
			require.NoError(t, err)
			for _, r := range c.reports {
				c.want.Reports = append(c.want.Reports, r.(orchestrate.Report))
			}
			for _, i := range c.unfinished {
				c.want.Unfinished = append(c.want.Unfinished, s.bridges[i])
			}
			assert.Equal(t, c.want, got)
		})
	}
}

// A run that cannot go on keeps no other from its step, and is not forgotten.
func TestStepAllGoesOnAfterAnError(t *testing.T) {
	s := newSteps(orchestrate.Report{Run: "a"}, errors.New("damaged"), orchestrate.Report{Run: "c"}, errors.New("gone"))
	got, err := orchestrate.StepAll(t.Context(), s.bridges, s.take)
	require.EqualError(t, err, "damaged\ngone")
	assert.Equal(t, []string{"a", "c"}, s.stepped)
	assert.Len(t, got.Reports, 2)
}
