package client

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/testing/model"
	"heartbeat/internal/testing/script"
)

// holding starts a session in some way that has the first of three entries, whose answer is
// held back. The settings of its project wire the hook, for any other session too, unless
// others need settings of their own.
func holding(ctx context.Context, t *testing.T, how string) (r *rig, all []entry, owner *Process, others Options, letGo func()) {
	t.Helper()
	answers, letGo := held(ctx, "[e1]")
	all = some(3)
	r = newRig(t, answers).add(all...)
	r.Record("Stop")
	if how == "rewake" {
		others.Settings = r.path("others.json")
		r.installIn(others.Settings)
	} else {
		r.installIn(r.projectSettings())
	}
	switch how {
	case "print":
		owner = r.Print(prompt(1), others).Process
	case "interactive":
		owner = r.attended(ctx, others).Process
	case "rewake":
		owner = r.install("--rewake").attended(ctx, r.options()).Process
	case "launcher":
		r.managing(ctx)
	}
	r.asked(ctx, "[e1]", 1)
	return r, all, owner, others, letGo
}

// recovers runs heartbeat recover, and returns what it said and its status.
func (r *rig) recovers(args ...string) (said string, status int) {
	r.t.Helper()
	cmd := exec.Command(r.heartbeat(), append([]string{"recover", "--inbox", r.inbox}, args...)...)
	out, _ := cmd.CombinedOutput() // the status says how it ended
	return string(out), cmd.ProcessState.ExitCode()
}

// Whoever else works on the inbox of a session that lives, running or stopped, gets
// nothing of it, and the session answers every entry once.
func TestHeartbeatPairs(t *testing.T) {
	for _, how := range []string{"print", "interactive", "rewake", "launcher"} {
		t.Run(how, func(t *testing.T) {
			ctx := minutes(t)
			r, all, owner, others, letGo := holding(ctx, t, how)
			for _, stop := range []bool{false, true} {
				if stop && owner == nil {
					break
				} else if stop {
					require.NoError(t, owner.Signal(syscall.SIGSTOP))
				}
				r.drain(ctx, prompt(2), others)
				said, status := r.recovers("--on-orphan", "retry")
				assert.Equal(t, 1, status, said)
				assert.Contains(t, said, "nothing was changed: end that session, or say --force")
				w, _ := r.managing(ctx).wait()
				assert.Equal(t, 75, w.Exit, w.Detail)
			}
			stops := len(r.Events("Stop"))
			asker := r.attended(ctx, others)
			_, err := r.WaitEvent(ctx, "Stop", stops+1)
			require.NoError(t, err)
			r.until(ctx, "its stop is over", func() bool { return len(r.hooks()) == 0 })
			require.Equal(t, "[e1]", r.tagOf(r.flying().EntryID))
			if owner != nil {
				require.NoError(t, owner.Signal(syscall.SIGCONT))
			}
			letGo()
			r.answered(ctx, len(all))
			r.settled(answeredOnce(all...)...)
			r.quit(ctx, asker)
		})
	}
}

// A session is resumed in another process while the first one is at work.
func TestHeartbeatPairsResumed(t *testing.T) {
	ctx := minutes(t)
	r, all, _, others, letGo := holding(ctx, t, "print")
	id := r.flying().SessionID
	others.Resume = id
	r.drain(ctx, prompt(2), others)
	require.Equal(t, "[e1]", r.tagOf(r.flying().EntryID))
	assert.Contains(t, r.run("", "status"), "waiting for an answer to the entry", "its session has ended elsewhere")
	letGo()
	r.answered(ctx, len(all))
	r.settled(answeredOnce(all...)...)
}

// A person takes the entry away. What its session answers then settles nothing, and it
// goes on with the next one.
func TestHeartbeatPairsForced(t *testing.T) {
	ctx := minutes(t)
	r, all, _, _, letGo := holding(ctx, t, "print")
	said, status := r.recovers("--force")
	assert.Zero(t, status, said)
	assert.Contains(t, said, "orphaned")
	letGo()
	r.answered(ctx, len(all)-1)
	assert.Equal(t, "orphaned", r.deadLetters()[0].Reason)
	for i, l := range r.results() {
		assert.Equal(t, all[i+1].tag, r.tagOf(l.EntryID))
	}
	for _, e := range all {
		assert.Equal(t, 1, r.arrivals(e.text), "how often the model got %s", e.tag)
	}
}

// Another session waits for the entry of one that is killed, and takes over at once.
func TestHeartbeatPairsTakeOver(t *testing.T) {
	for name, flags := range map[string][]string{
		"persist": {"--mode", "persist", "--idle-interval", "1h"},
		"rewake":  {"--rewake"},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := minutes(t)
			all := some(3)
			r := newRig(t, first("[e1]", model.Hang())).install("--on-orphan", "retry").add(all...)
			owner := r.Print(prompt(1), r.options())
			r.asked(ctx, "[e1]", 1)
			waits := r.path("waits.json")
			r.installIn(waits, append(flags, "--on-orphan", "retry")...)
			s := r.attended(ctx, Options{Settings: waits})
			r.until(ctx, "it waits", func() bool { return slices.ContainsFunc(r.hooks(), script.Watches) })
			require.Equal(t, "[e1]", r.tagOf(r.flying().EntryID))
			owner.Kill()
			r.answered(ctx, len(all))
			fates := answeredOnce(all...)
			fates[0].arrivals, fates[0].attempt = 2, 2
			r.settled(fates...)
			r.quit(ctx, s)
		})
	}
}

// crowd is sessions that work on one inbox, some of which wait in their hook for their
// turn. They are killed at random, and others follow.
type crowd struct {
	*rig
	ctx    context.Context
	mu     sync.Mutex
	live   map[string]*Run // by session
	killed map[string]bool
}

// follow runs session after session until the context ends.
func (c *crowd) follow(settings string) {
	for c.ctx.Err() == nil {
		id := fmt.Sprintf("%08x-0000-4000-8000-%012x", rand.Uint32(), rand.Uint32())
		c.mu.Lock()
		run := c.Print(prompt(1), Options{Settings: settings, Args: []string{"--session-id", id}, Env: []string{NoBlockCap}})
		c.live[id] = run
		c.mu.Unlock()
		_, _ = run.Wait(c.ctx) // however it ends
		c.mu.Lock()
		delete(c.live, id)
		c.mu.Unlock()
	}
}

// kill kills the session that has the entry in flight, or any other one.
func (c *crowd) kill(owner bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	victim := ""
	if d := c.flying(); d != nil && owner {
		victim = d.SessionID
	}
	for id := range c.live { // in any order
		if victim == "" {
			victim = id
		}
	}
	if run := c.live[victim]; run != nil {
		c.killed[victim] = true
		run.Kill()
	}
}

// Many sessions work on one inbox and are killed at random: each entry is answered once,
// and is asked again only where the session was killed that had it.
func TestHeartbeatPairsCrowd(t *testing.T) {
	for _, n := range []int{2, 8} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			const entries = 100
			ctx, cancel := context.WithCancel(ending(t, 3*patience))
			defer cancel()
			all := some(entries)
			r := newRig(t, slow(own, 20*time.Millisecond)).install("--on-orphan", "retry", "--max-attempts", "20").add(all...)
			waits := r.path("waits.json")
			r.installIn(waits, "--mode", "persist", "--idle-interval", "1h", "--on-orphan", "retry", "--max-attempts", "20")
			c := &crowd{rig: r, ctx: ctx, live: map[string]*Run{}, killed: map[string]bool{}}
			var sessions sync.WaitGroup
			for i := range n {
				settings := []string{r.settings, waits, waits, waits}[i%4]
				sessions.Go(func() { c.follow(settings) })
			}
			for next := 0; next < entries; next += 5 + rand.IntN(10) {
				r.until(ctx, "they go on", func() bool { return len(r.results()) >= next })
				c.kill(rand.IntN(3) > 0)
			}
			r.answered(ctx, entries)
			cancel()
			sessions.Wait()
			got := map[string]int{}
			for _, l := range r.results() {
				got[r.tagOf(l.EntryID)]++
			}
			redelivered := map[string]int{}
			for _, l := range r.lines(".events.jsonl") {
				if l.EntryID == "" {
					continue
				}
				redelivered[r.tagOf(l.EntryID)]++
				assert.True(t, c.killed[l.SessionID], "%s was taken from a session that nobody has killed", r.tagOf(l.EntryID))
			}
			for _, e := range all {
				assert.Equal(t, 1, got[e.tag], "results of %s", e.tag)
				assert.LessOrEqual(t, r.arrivals(e.text), 1+redelivered[e.tag], "how often %s was asked", e.tag)
			}
			assert.Empty(t, r.deadLetters())
			assert.NotEmpty(t, redelivered, "no session was killed at work")
			t.Logf("%d sessions were killed, %d entries were delivered again", len(c.killed), len(redelivered))
		})
	}
}
