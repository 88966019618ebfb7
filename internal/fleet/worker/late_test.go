package worker_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/fleet/setup"
	"heartbeat/internal/testing/fleet"
)

// An agent that comes back when the decision of another one is no longer kept works on nothing
// again, decides nothing, and replies to nobody.
func TestAnAgentThatComesBackTooLate(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		dies  string // the step after which it is killed
		turns []string
		says  string
	}{
		"before its turn":  {"appended", []string{"a"}, "its entry is taken back without a turn"},
		"with its outcome": {"answered", []string{"a", "a"}, "this outcome is kept as superseded"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 3*time.Second)
			ctx := fleet.Context(t)
			plan, err := setup.Make(ctx, w.js, &setup.Wanted{
				Stream: "WORK", Subjects: []string{"work.>"}, AckWait: 3 * time.Second, MaxDeliver: 5, Duplicates: 2 * time.Second,
				KeepResults: 6 * time.Second, Replicas: 1, Given: map[string]bool{"keep-results": true, "duplicates": true},
			})
			require.NoError(t, err)
			require.NoError(t, plan.Apply(ctx))
			w.send("a")
			a := w.start("one", []string{killVariable + "=" + c.dies})
			<-a.Done
			a.killLauncher()
			b := w.start("two", nil)
			w.settled(b, "a")
			w.eventually("its reply", func() bool { return w.replied("a") == 1 }, b)
			w.eventually("the end of its decision", func() bool { return w.known("a") == nil }, b)
			b.term()
			b.ended()

			a = a.again(w)
			w.says(a, "was settled by agent two")
			w.says(a, c.says)
			w.eventually("an empty ledger", func() bool { return len(a.held()) == 0 }, a)
			assert.Nil(t, w.known("a"), "it decided nothing")
			assert.Equal(t, 1, w.replied("a"))
			assert.Equal(t, c.turns, w.turns())
		})
	}
}
