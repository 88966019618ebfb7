package supervise

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/orchestrate"
	runs "heartbeat/orchestrate/run"
)

// What an empty inbox means depends on the runs: only those that are done leave it
// drained.
func TestNothingWaits(t *testing.T) {
	soon, late := time.Now().Add(time.Minute), time.Now().Add(24*time.Hour)
	done := orchestrate.Report{Run: "a", Done: true}
	held := orchestrate.Report{Run: "b", Status: runs.Waiting, Held: []orchestrate.Held{{Effect: "e1", Question: "Ship it?"}}}
	stuck := orchestrate.Report{Run: "c", Guard: "the process was run 9 times already", OutOfSteps: true}
	for name, c := range map[string]struct {
		reports []orchestrate.Report
		reason  Reason
		detail  string
	}{
		"no run":         {nil, Drained, ""},
		"done":           {[]orchestrate.Report{done}, Drained, ""},
		"held":           {[]orchestrate.Report{done, held}, RunWaits, "run b waits for a person: e1 Ship it?"},
		"stuck":          {[]orchestrate.Report{stuck, held}, RunStuck, "run c goes no further: the process was run 9 times already: a greater --max-iterations lets it continue; run b waits for a person: e1 Ship it?"},
		"asleep":         {[]orchestrate.Report{held, {Run: "d", NotBefore: &soon}}, "", ""},
		"asleep long":    {[]orchestrate.Report{{Run: "d", NotBefore: &late}}, RunWaits, "a run sleeps until " + late.Local().Format(time.DateTime)},
		"entry not due":  {[]orchestrate.Report{{Run: "d", Status: runs.Waiting, Waits: 1}}, RunWaits, "run d is waiting"},
		"stuck in sleep": {[]orchestrate.Report{{Run: "c", Guard: "enough", NotBefore: &soon}}, RunStuck, "run c goes no further: enough"},
	} {
		t.Run(name, func(t *testing.T) {
			bridges, next := make([]*orchestrate.Bridge, len(c.reports)), 0
			all, err := orchestrate.StepAll(t.Context(), bridges, func(context.Context, *orchestrate.Bridge) (orchestrate.Report, error) {
				next++
				return c.reports[next-1], nil
			})
			require.NoError(t, err)
			r := &run{Options: Options{Mode: Drain, Endurance: Endurance{UntilDrained: true}}}
			st := state{runs: inWords(all), asleep: all.NotBefore}
			e := r.endReason(st)
			if c.reason == "" {
				assert.Nil(t, e)
				assert.Positive(t, r.rest(st))
				return
			}
			assert.Equal(t, &ending{reason: c.reason, detail: c.detail}, e)
		})
	}
}
