package client

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/inbox"
	"heartbeat/internal/testing/model"
	recovery "heartbeat/recover"
)

// leavingTask is a model that runs a command in the background for the first entry, and
// answers when it has ended.
func leavingTask(command string) answers {
	return func(tag string, nth int) model.Reply {
		switch {
		case tag == "[e1]" && nth == 1:
			return model.Tool("Bash", map[string]any{"command": command, "run_in_background": true})
		case tag == "" && nth == 1:
			return model.Text("it runs") // the tool's result
		case tag == "":
			return model.Text("it is done")
		}
		return own(tag, nth)
	}
}

// anyCommand lets the session run any command, unasked.
var anyCommand = []string{"--permission-mode", "default", "--allowedTools=Bash"}

// tasks returns the background tasks that the nth result names.
func (r *rig) tasks(n int) string {
	r.t.Helper()
	raw, err := os.ReadFile(r.path(".results.jsonl"))
	require.NoError(r.t, err)
	var result struct {
		Tasks json.RawMessage `json:"background_tasks"`
	}
	require.NoError(r.t, json.Unmarshal([]byte(strings.Split(string(raw), "\n")[n]), &result))
	return string(result.Tasks)
}

// waitsForTask reports whether the entry in flight waits for what its turn left running.
func (r *rig) waitsForTask() bool {
	r.t.Helper()
	box, err := inbox.Open(r.inbox, inbox.Options{})
	require.NoError(r.t, err)
	v, err := box.View()
	require.NoError(r.t, err)
	defer v.Close()
	d := v.InFlight()
	return d != nil && recovery.EvidenceOf(d).TaskWait.Held
}

// A session waits for a task that an entry left running in the background, at a terminal
// and in print mode. The reply is that of the turn in which the task's end was reported.
func TestManagedBackground(t *testing.T) {
	for name, print := range map[string][]string{"at a terminal": nil, "in print mode": {"-p"}} {
		t.Run(name, func(t *testing.T) {
			ctx, dir := minutes(t), t.TempDir()
			ends, done := filepath.Join(dir, "ends"), filepath.Join(dir, "done")
			all := some(2)
			r := newRig(t, leavingTask("until test -e "+ends+"; do sleep 0.1; done; touch "+done)).add(all...)
			m := r.managingClient(ctx, append(print, anyCommand...))
			r.until(ctx, "the turn is over, and the entry waits for its task", r.waitsForTask)
			require.NoError(t, os.WriteFile(ends, nil, 0o600))
			w, log := m.wait()
			assert.FileExists(t, done, "the task was killed")
			assert.Equal(t, worked{Reason: "drained", Answered: 2, Sessions: 1}, w, "%q", log)
			results := r.results()
			require.Len(t, results, 2, r.state())
			assert.Equal(t, []string{"it is done", ownReply("[e2]")}, []string{results[0].Reply, results[1].Reply})
			assert.Contains(t, r.tasks(0), "touch")
			assert.NotContains(t, r.tasks(0), "cut_off")
			assert.Equal(t, 1, r.arrivals(all[0].text))
		})
	}
}

// The wait for a background task is bounded.
func TestManagedBackgroundTimeout(t *testing.T) {
	all := some(2)
	r := newRig(t, leavingTask("sleep 600")).add(all...)
	ctx := minutes(t)
	w, log := r.managingClient(ctx, anyCommand, "--background-timeout", "3s").wait()
	assert.Equal(t, worked{Reason: "drained", Answered: 2, Sessions: 2, Restarts: 1}, w)
	assert.Contains(t, strings.Join(log, "\n"), "has taken longer than 3s (--background-timeout)")
	fates := answeredOnce(all...)
	fates[0].reply = "it runs"
	r.settled(fates...)
	assert.Contains(t, r.tasks(0), `"cut_off":true`)
	r.sessionsGone(ctx)
}

// managingClient is managing with arguments of the client's own.
func (r *rig) managingClient(ctx context.Context, client []string, flags ...string) *managed {
	r.t.Helper()
	launch, err := buildLaunch()
	require.NoError(r.t, err)
	args := slices.Concat(r.workOn(), flags, []string{"--", r.binary}, client, []string{prompt(1)})
	return &managed{r.start(ctx, []string{NoRetries, "CI=1"}, "", launch, args...), r}
}
