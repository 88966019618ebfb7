package worker_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/inbox"
	"heartbeat/internal/fleet/upstream"
	"heartbeat/internal/testing/fleet"
	"heartbeat/internal/testing/long"
)

// inTurn is the step at which a session works on the entry.
const inTurn = "in the turn"

// course is what becomes of a message, and the steps of an agent on the way.
type course struct {
	name  string
	steps []string
	text  string
	args  []string
	// amid is done while the agent has the message, nil for nothing.
	amid func(w *world, a *running)
	want upstream.Word
	// by is who settled it, "" for an agent that the test runs.
	by string
}

func courses() []course {
	return []course{
		{
			name: "answer", text: "a", want: upstream.WasAnswered,
			steps: []string{
				"pulled", "settle: lease", "claimed", "appended", inTurn, "answered",
				"settle: decision", "settle: reply", "settle: reply state", "settle: settled", "settled", "dropped",
			},
		},
		{
			name: "dead letter", text: " ", want: upstream.WasDead,
			steps: []string{
				"pulled", "claimed", "answered",
				"settle: decision", "settle: letter", "settle: letter state", "settle: settled", "settled", "dropped",
			},
		},
		{
			name: "superseded", text: "a", want: upstream.WasAnswered, by: "zero",
			steps: []string{"answered", "settle: superseded", "settle: settled", "settled", "dropped"},
			amid: func(w *world, a *running) {
				w.eventually("a turn", func() bool { return len(w.turns()) == 1 }, a)
				w.answerAs("zero", a)
				w.open()
			},
		},
		{
			name: "given back", text: "a", want: upstream.WasAnswered, args: []string{"--give-back", "--slots", "2"},
			steps: []string{"withdrawn", "settle: freed", "settle: settled", "given back"},
			amid: func(w *world, a *running) {
				w.eventually("its entry, behind another one", func() bool { return len(w.turns()) == 1 && a.backlog() == 2 }, a)
				a.pause(time.Hour) // until it ends
			},
		},
	}
}

// TestAKillAtEachStep kills the agent at each step. It goes on when it runs again.
func TestAKillAtEachStep(t *testing.T) {
	eachStep(t, func(t *testing.T, c *course, step string) {
		w := newWorld(t, 3*time.Second)
		a := c.begin(w, w.server.URL(), killVariable, step)
		c.killed(w, a, step)
		c.ends(w, 1, a.again(w, c.args...))
	})
}

// TestAKillAtEachStepWithAnotherAgent has another agent take what it can meanwhile.
func TestAKillAtEachStepWithAnotherAgent(t *testing.T) {
	eachStep(t, func(t *testing.T, c *course, step string) {
		w := newWorld(t, 3*time.Second)
		a := c.begin(w, w.server.URL(), killVariable, step)
		c.killed(w, a, step)
		b := w.start("two", nil)
		c.isTaken(w, b)
		c.ends(w, 2, a.again(w, c.args...), b)
	})
}

// TestACutAtEachStep takes the network from an agent at each step.
func TestACutAtEachStep(t *testing.T) {
	for name, cut := range map[string]func(*fleet.Proxy){"cut": (*fleet.Proxy).Cut, "half open": (*fleet.Proxy).HalfOpen} {
		t.Run(name, func(t *testing.T) {
			eachStep(t, func(t *testing.T, c *course, step string) {
				w := newWorld(t, 3*time.Second)
				p := fleet.NewProxy(t, w.server.Address())
				a := c.begin(w, p.URL(), holdVariable, step)
				c.held(w, a, step)
				cut(p)
				if name == "cut" {
					w.says(a, "not connected")
				}
				w.tell("go on")
				w.eventually("that it misses something", func() bool { return p.Missed() > 0 }, a)
				p.Heal()
				c.ends(w, 1, a)
			})
		})
	}
}

// TestACutAtEachStepWithAnotherAgent has another agent take the message meanwhile.
func TestACutAtEachStepWithAnotherAgent(t *testing.T) {
	eachStep(t, func(t *testing.T, c *course, step string) {
		w := newWorld(t, 3*time.Second)
		p := fleet.NewProxy(t, w.server.Address())
		a := c.begin(w, p.URL(), holdVariable, step)
		c.held(w, a, step)
		p.Cut()
		b := w.start("two", nil)
		c.isTaken(w, b)
		w.tell("go on")
		p.Heal()
		c.ends(w, 2, a, b)
	})
}

// TestARestartOfTheServerAtEachStep restarts the server while an agent is at a step.
func TestARestartOfTheServerAtEachStep(t *testing.T) {
	eachStep(t, func(t *testing.T, c *course, step string) {
		w := newWorld(t, 3*time.Second)
		a := c.begin(w, w.server.URL(), holdVariable, step)
		c.held(w, a, step)
		w.server.Restart(t)
		w.listens()
		w.tell("go on")
		c.ends(w, 1, a)
	})
}

// eachStep runs a test for each step of each course; without HEARTBEAT_LONG for some.
func eachStep(t *testing.T, run func(t *testing.T, c *course, step string)) {
	t.Parallel()
	n := 0
	for _, c := range courses() {
		for _, step := range c.steps {
			each := 9
			if t.Name() == "TestAKillAtEachStep" {
				each = 3
			}
			if n++; !long.Wanted() && n%each != len(t.Name())%each {
				continue
			}
			t.Run(c.name+"/"+strings.TrimPrefix(step, "settle: "), func(t *testing.T) {
				t.Parallel()
				run(t, &c, step)
			})
		}
	}
}

// begin starts an agent that takes the message of the course, and has the fault at a step.
func (c *course) begin(w *world, url, fault, step string) *running {
	if c.amid != nil || step == inTurn {
		w.hold()
	}
	a := w.startAt(url, filepath.Join(w.t.TempDir(), "one", "inbox.jsonl"), "one", []string{fault + "=" + step}, c.args...)
	if len(c.args) > 0 {
		w.send("x") // what waits behind it can be given back
	}
	w.sendText("a", c.text)
	if c.amid != nil {
		c.amid(w, a)
	}
	return a
}

// killed waits until the agent has come to the step and was killed there.
func (c *course) killed(w *world, a *running, step string) {
	if step == inTurn {
		w.eventually("a turn", func() bool { return len(w.turns()) == 1 }, a)
		a.kill()
		return
	}
	a.ended()
}

// held waits until the agent has come to the step.
func (c *course) held(w *world, a *running, step string) {
	if step == inTurn {
		w.eventually("a turn", func() bool { return len(w.turns()) == 1 }, a)
		return
	}
	w.told("held", a)
}

// isTaken waits until another agent has settled the message, or found that settled.
func (c *course) isTaken(w *world, b *running) {
	if is(w.gate, "hold") {
		w.open()
	}
	w.settled(b, "a")
}

// ends waits until all is settled, of a message after it too, and looks at what is there.
// atMost is how many turns it may have taken.
func (c *course) ends(w *world, atMost int, all ...*running) {
	w.t.Helper()
	if is(w.gate, "hold") {
		w.open()
	}
	if c.name == "given back" {
		all[0].resume()
	}
	w.send("b")
	for _, id := range []string{"a", "b"} {
		w.eventually("a decision about "+id, func() bool { return w.known(id) != nil }, all...)
	}
	for _, r := range all {
		w.eventually("an empty ledger of "+r.name, func() bool { return len(r.held()) == 0 && r.backlog() == 0 }, all...)
	}
	w.eventually("an empty stream", func() bool { return w.waiting() == 0 }, all...)

	r := w.known("a")
	assert.Equal(w.t, c.want, r.Outcome)
	if c.by != "" {
		assert.Equal(w.t, c.by, r.Agent)
	}
	w.repliesTo("a", r)
	w.repliesTo("b", w.known("b"))
	letters, turns := 0, strings.Count(strings.Join(w.turns(), " "), "a")
	if c.want == upstream.WasDead {
		letters, atMost = 1, 0
		assert.Equal(w.t, upstream.Kept, r.LetterState)
	}
	assert.EqualValues(w.t, letters, w.letters())
	assert.LessOrEqual(w.t, turns, atMost, "turns")
	for _, id := range []string{"a", "b"} {
		assert.Equal(w.t, w.known(id).Agent, w.lease(id).Agent, "the lease of %s", id)
	}
}

// repliesTo looks whether there was one reply or none, as the decision says.
func (w *world) repliesTo(id string, r *upstream.Record) {
	w.t.Helper()
	switch n := w.replied(id); {
	case r.ReplyState == upstream.Sent:
		assert.Equal(w.t, 1, n, "replies to %s", id)
	case r.ReplyState == upstream.InDoubt:
		assert.LessOrEqual(w.t, n, 1, "replies to %s", id)
	default:
		assert.Zero(w.t, n, "replies to %s, whose state is %q", id, r.ReplyState)
	}
	assert.NotEqual(w.t, upstream.Sending, r.ReplyState)
}

// letters counts the dead letters.
func (w *world) letters() uint64 {
	info, err := w.l.Dead.Info(fleet.Context(w.t))
	require.NoError(w.t, err)
	return info.State.Msgs
}

// answerAs takes the message that an agent holds, and answers it, as another one.
func (w *world) answerAs(name string, a *running) {
	held := a.held()[0]
	c := upstream.Claim{Message: held.Message, Agent: name}
	c.Copy++
	s, err := w.up.Take(fleet.Context(w.t), c)
	require.NoError(w.t, err)
	c.Lease = s.Lease
	_, err = w.up.Answer(fleet.Context(w.t), c, upstream.Answer{Reply: "done", Settled: upstream.Settled{Attempts: 1, At: time.Now()}})
	require.NoError(w.t, err)
}

// listens waits until the requester is connected.
func (w *world) listens() {
	w.eventually("the requester's connection", func() bool { return w.nc.IsConnected() && w.nc.FlushTimeout(time.Second) == nil })
}

// backlog is how many entries wait in an agent's inbox or are in flight.
func (r *running) backlog() int {
	box, err := inbox.Open(r.inbox, inbox.Options{})
	require.NoError(r.t, err)
	v, err := box.View()
	require.NoError(r.t, err)
	defer func() { require.NoError(r.t, v.Close()) }()
	n := 0
	require.NoError(r.t, v.Waits(nil, func(inbox.Waiting) bool { n++; return true }))
	if v.InFlight() != nil {
		n++
	}
	return n
}

func (r *running) pause(during time.Duration) {
	until := time.Now().Add(during)
	r.transact(func(tx *inbox.Tx) error { _, err := tx.Holds().Pause("by hand", &until); return err })
}

func (r *running) resume() { r.transact(func(tx *inbox.Tx) error { return tx.Holds().Resume() }) }

func (r *running) transact(do func(*inbox.Tx) error) {
	box, err := inbox.Open(r.inbox, inbox.Options{LockWait: time.Minute})
	require.NoError(r.t, err)
	tx, err := box.Begin(fleet.Context(r.t))
	require.NoError(r.t, err)
	require.NoError(r.t, do(tx))
	require.NoError(r.t, tx.Commit())
	require.NoError(r.t, tx.Close())
}
