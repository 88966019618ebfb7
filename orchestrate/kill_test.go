package orchestrate_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/testing/agent"
	"heartbeat/internal/testing/script"
)

// killedRuns is how many runs are driven under kills, unless HEARTBEAT_KILLED_RUNS is set.
const killedRuns = 2

// TestRunsUnderKills kills the hook, babysitter's command, the verb that hands a
// result over, or the whole session, at random moments, and starts the next session.
// Every run is completed, and each effect has one result.
func TestRunsUnderKills(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a minute: left out with -short")
	}
	n := killedRuns
	if text := os.Getenv("HEARTBEAT_KILLED_RUNS"); text != "" {
		var err error
		n, err = strconv.Atoi(text)
		require.NoError(t, err)
	}
	for i := range n {
		t.Run(strconv.Itoa(i), func(t *testing.T) { // not side by side: nothing would ever be killed early
			r := newRunRig(t, `export async function process(inputs, ctx) {
  const all = []; for (let i = 0; i < 10; i++) all.push(await ctx.task(i % 2 ? odd : agent, {q:'step'+i})); return all.length; }`)
			random := rand.New(rand.NewPCG(uint64(i), 0))
			sessions, events, still := 0, 0, 0
			within := 4 * time.Second
			for deadline := time.Now().Add(30 * time.Minute); r.status() != "completed"; sessions++ {
				require.True(t, time.Now().Before(deadline), "not completed after %d sessions", sessions)
				r.session(random, within)
				now, err := filepath.Glob(filepath.Join(r.run, "journal", "*"))
				require.NoError(t, err)
				if still++; len(now) > events {
					events, still = len(now), 0
				}
				if still == 3 { // a slow machine gets nowhere before it is killed
					within, still = 2*within, 0
				}
			}
			r.drive("--on-orphan", "retry", "--max-attempts", "99")
			assert.Equal(t, "completed", r.state())
			assert.Equal(t, "10", r.output())
			r.eachOnce(10)
			t.Logf("%d sessions", sessions)
		})
	}
}

// status is the run's state as the CLI reports it, or "" if the CLI was killed.
func (r *runRig) status() string {
	raw, err := os.ReadFile(filepath.Join(r.run, "state", "output.json"))
	if err == nil && strings.TrimSpace(string(raw)) == "10" {
		return "completed"
	}
	return ""
}

// session works until something of it is killed, at some moment within that time, or the stop is approved.
func (r *runRig) session(random *rand.Rand, within time.Duration) {
	mark := fmt.Sprintf("HEARTBEAT_TEST_MARK=%d", random.Uint64())
	ctx, stop := context.WithCancel(context.Background())
	var once sync.WaitGroup
	once.Go(func() {
		select {
		case <-time.After(time.Duration(random.Int64N(int64(within)))):
		case <-ctx.Done():
			return
		}
		if random.IntN(3) == 0 {
			stop() // the whole session
			return
		}
		if all := script.Marked(mark); len(all) > 0 {
			_ = syscall.Kill(all[random.IntN(len(all))], syscall.SIGKILL) // it may have ended
		}
	})
	a := &agent.Agent{
		Hook: []string{r.hook, "--inbox", r.inbox, "--run", r.run, "--babysitter", r.babysitter, "--on-orphan", "retry", "--max-attempts", "99"},
		Env:  append(os.Environ(), "CLAUDE_PID=", mark), Answer: func(text string) string { return r.obeyKilled(text, mark) },
		Transcript: filepath.Join(r.dir, "transcript.jsonl"),
	}
	_ = a.Run(ctx, "begin") // it may be killed
	stop()
	once.Wait()
	for _, pid := range script.Marked(mark) {
		_ = syscall.Kill(pid, syscall.SIGKILL) // what is left of the session
	}
}

// eachOnce checks that the run asked for n effects, and that each has one result.
func (r *runRig) eachOnce(n int) {
	r.t.Helper()
	var list struct {
		Tasks []struct{ EffectID, Status string }
	}
	require.NoError(r.t, json.Unmarshal([]byte(r.babysit("task:list", r.run, "--json")), &list))
	assert.Len(r.t, list.Tasks, n)
	for _, task := range list.Tasks {
		assert.Equal(r.t, "resolved_ok", task.Status, task.EffectID)
	}
	var log struct {
		Events []struct {
			Type string
			Data struct{ EffectID string }
		}
	}
	require.NoError(r.t, json.Unmarshal([]byte(r.babysit("run:events", r.run, "--json", "--filter-type", "EFFECT_RESOLVED")), &log))
	assert.Len(r.t, log.Events, n, "each effect has one result")
}
