package pairs

import (
	"fmt"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/testing/long"
	"heartbeat/internal/testing/script"
)

// actor is one that may act on an inbox. All but the clients themselves are the shipped
// commands.
type actor struct {
	name string
	// owns says that it can have the entry in flight.
	owns  bool
	start func(*rig) *process
	// refused checks how it leaves an entry alone whose owner lives.
	refused func(*rig, *process)
	// settles says that it decides about an entry whose owner is gone.
	settles bool
}

const (
	left = "is left to that one" // as a Stop says it
	with = "the entry e1 is with session "
)

var actors = []actor{
	{printing, true, wired(printing), func(r *rig, p *process) {
		r.refuses(p, 0, with, left)
	}, true},
	{interactive, true, wired(interactive), func(r *rig, p *process) {
		r.until("the session to sit at its prompt", func() bool { return r.told("sits-" + strconv.Itoa(p.Process.Pid)) })
		assert.Contains(r.t, p.says(), with)
	}, true},
	{rewake, true, wired(rewake), func(r *rig, p *process) {
		r.until("a hook to wait in the background", r.waiter)
	}, true},
	{persisting, true, wired(persisting), func(r *rig, p *process) {
		r.until("the hook to wait", func() bool { return r.waits(p) })
	}, true},
	{"launcher, drain", true, launcher("drain"), func(r *rig, p *process) { r.refuses(p, 75, "this inbox already|"+with) }, true},
	{"launcher, persist", true, launcher("persist"), func(r *rig, p *process) { r.refuses(p, 75, "this inbox already|"+with) }, true},
	{"host", true, (*rig).hosted, func(r *rig, p *process) { r.refuses(p, 75, "this inbox already|"+with) }, true},
	{"recover", false, func(r *rig) *process { return r.verb("recover", "--on-orphan", r.policy) }, func(r *rig, p *process) {
		r.refuses(p, 1, with, "nothing was changed: end that session, or say --force")
	}, true},
	{"cancel", false, func(r *rig) *process { return r.verb("cancel", "e1") }, func(r *rig, p *process) { r.refuses(p, 1, "in flight") }, false},
	{"pause", false, func(r *rig) *process { return r.verb("pause", "--reason", "pairs") }, func(r *rig, p *process) { r.refuses(p, 0) }, false},
	{"MCP verdict", false, saysDone, func(r *rig, p *process) {
		r.until("an answer", func() bool { return strings.Contains(p.says(), `"id":2`) })
		r.refuses(p, 0, `"isError":true`, "the entry e1 in flight is another session's")
	}, false},
}

func wired(kind string) func(*rig) *process {
	return func(r *rig) *process { return r.session(kind, "") }
}

func launcher(mode string) func(*rig) *process {
	return func(r *rig) *process { return r.launch(nil, mode) }
}

func (r *rig) launch(env []string, mode string) *process {
	r.t.Helper()
	return r.command("", env, commands+"/heartbeat-launch", "--inbox", r.inbox(), "--mode", mode, "--on-orphan", r.policy, "--cwd", r.path("cwd"), "--", r.path("claude"), "begin")
}

// saysDone has a tool server that is not the owner's say that the entry is done.
func saysDone(r *rig) *process {
	var in strings.Builder
	for _, line := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"pairs","version":"1"}}}`,
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
		`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"task_done","arguments":{"result":"stolen"}}}`,
	} {
		in.WriteString(line + "\n")
	}
	return r.command(in.String(), nil, commands+"/heartbeat", "mcp", "--inbox", r.inbox())
}

// refuses checks the status of a process, and that it says something of each: alternatives
// are separated by a bar.
func (r *rig) refuses(p *process, status int, says ...string) {
	r.t.Helper()
	assert.Equal(r.t, status, r.status(p), "%s", p.says())
	for _, each := range says {
		assert.Regexp(r.t, each, p.says())
	}
}

// The states of the owner.
const (
	alive   = "alive"
	stopped = "stopped"
	killed  = "killed"
	resumed = "resumed in another process"
)

var states = []string{alive, stopped, killed, resumed}

// Whoever comes second: as long as its owner lives, an entry is answered once, by that one,
// and whoever it is kept from is told; once the owner is dead, it is decided once.
func TestPairs(t *testing.T) {
	for i, first := range actors {
		for j, second := range actors {
			for k, state := range states {
				// Each actor meets each state, as the first and as the second.
				if !long.Wanted() && (i%2 != j%2 || (i/2+j/2)%len(states) != k) {
					continue
				}
				policy := []string{"deadletter", "retry"}[(i+j)%2]
				t.Run(fmt.Sprintf("%s, then %s, %s, %s", first.name, second.name, state, policy), func(t *testing.T) {
					t.Parallel()
					newRig(t, policy).pair(first, second, state)
				})
			}
		}
	}
}

func (r *rig) pair(first, second actor, state string) {
	r.own(first)
	if !first.owns {
		first.refused(r, first.start(r))
	}
	r.bring(state)
	p := second.start(r)
	if state != killed {
		second.refused(r, p)
		require.Equal(r.t, "[e1]", r.inFlight(), "the living owner was robbed\n%s", r.state())
		require.Empty(r.t, r.fates()["[e1]"], "the living owner was robbed\n%s", r.state())
		status := r.verb("status")
		assert.Zero(r.t, r.status(status))
		assert.Contains(r.t, status.says(), r.id[:8], "it does not name whose entry it is")
		assert.Contains(r.t, status.says(), "waiting for an answer to the entry e1")
	} else if second.settles {
		r.until("the entry of a dead owner to be settled", func() bool { return r.inFlight() != "[e1]" || len(r.asked("[e1]")) > 1 })
	} else {
		r.status(p)
	}
	r.release(state)
	r.drain()
	if second.name == "cancel" && r.status(p) == 0 {
		state = canceled // whoever had it gave it back at once
	}
	r.check(state)
	for _, host := range r.hosts { // one that is killed leaves others that finish its session
		r.status(host)
	}
}

// canceled says that nobody has the entry any more.
const canceled = "canceled"

// own has an actor, or a session in its place, have the first entry in flight.
func (r *rig) own(first actor) {
	if !first.owns {
		first = actors[0]
	}
	p := first.start(r)
	r.until("the first entry to be asked about", func() bool {
		select {
		case <-p.done:
			r.t.Fatalf("%s has ended with %d: %s", first.name, p.ProcessState.ExitCode(), p.says())
		default:
		}
		return len(r.asked("[e1]")) == 1
	})
	r.owner = r.asked("[e1]")[0]
	r.id = r.delivery().SessionID
	require.NotEmpty(r.t, r.id)
}

// bring brings the owner into its state.
func (r *rig) bring(state string) {
	switch state {
	case stopped:
		require.NoError(r.t, syscall.Kill(r.owner, syscall.SIGSTOP))
	case killed:
		require.NoError(r.t, syscall.Kill(r.owner, syscall.SIGKILL))
		r.until("the owner's death", func() bool { return script.Dead(r.owner) })
	case resumed:
		r.refuses(r.session(printing, r.id), 0, with, left)
	}
}

// release lets the owner go on, if it lives.
func (r *rig) release(state string) {
	note(r.dir, "go", "")
	if state == stopped {
		require.NoError(r.t, syscall.Kill(r.owner, syscall.SIGCONT))
	}
	require.Zero(r.t, r.status(r.verb("resume")))
}

// drain has sessions come until all entries have their fate.
func (r *rig) drain() {
	r.until("all entries to be settled", func() bool {
		for _, tag := range entries {
			if !r.settled(tag) {
				assert.Zero(r.t, r.status(r.session(printing, "")))
				return false
			}
		}
		return true
	})
}

// check checks that each entry was asked about once and has one fate, and that what a dead
// owner left is what the policy says.
func (r *rig) check(state string) {
	for _, tag := range entries {
		want, asked := fate{Reply: "answer " + tag, Attempt: 1}, 1
		if tag == "[e1]" {
			switch {
			case state == canceled:
				want.Reply, want.Reason, want.Session = "", "canceled", r.id
			case state != killed:
				want.Session = r.id
			case r.policy == "retry":
				want.Attempt, asked = 2, 2
			default:
				want.Reply, want.Reason, want.Session = "", "orphaned", r.id
			}
		}
		got := r.fates()[tag]
		if assert.Len(r.t, got, 1, "%s\n%s", tag, r.state()) {
			if want.Session == "" {
				want.Session = got[0].Session
			}
			assert.Equal(r.t, want, got[0], tag)
		}
		assert.Len(r.t, r.asked(tag), asked, "how often %s was asked", tag)
	}
}

// A launcher's session is at its first prompt when another session is given the entry that
// it was started for. One that drains the inbox says whose that is, and ends; one that
// stays waits until the owner is through.
func TestLauncherComesTooLate(t *testing.T) {
	for _, owner := range actors[:4] {
		for _, mode := range []string{"drain", "persist"} {
			t.Run(owner.name+", "+mode, func(t *testing.T) {
				t.Parallel()
				r := newRig(t, "deadletter")
				launch := r.launch([]string{waitVariable + "=1"}, mode)
				r.until("the launcher's session to begin", func() bool { return len(lines(r.path("begun"))) == 1 })
				r.own(owner)
				note(r.dir, "begin", "")
				if mode == "drain" {
					r.refuses(launch, 75, with)
				} else {
					r.until("its hook to wait", func() bool { return r.waiter() })
				}
				r.release(alive)
				r.drain()
				r.check(alive)
			})
		}
	}
}
