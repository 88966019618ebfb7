package upstream

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/fleet/message"
	"heartbeat/internal/testing/fleet"
)

// telling is one thing that an agent tells, and what has to hold once that came through.
type telling struct {
	steps []string
	// before is told by somebody else first.
	before func(w *world, c Claim)
	call   func(ctx context.Context, u *Upstream, c Claim) error
	after  func(w *world, c Claim)
}

func tellings() map[string]telling {
	return map[string]telling{
		"answer": {
			steps: []string{"decision", "reply", "reply state", "settled"},
			call: func(ctx context.Context, u *Upstream, c Claim) error {
				_, err := u.Answer(ctx, c, done("it is done"))
				return err
			},
			after: func(w *world, _ Claim) {
				assert.Equal(w.t, []string{"answer.job.one", "job"}, w.results())
				assert.Equal(w.t, "it is done", w.answer("answer.job.one").Reply)
				d := w.decision("job")
				assert.Equal(w.t, WasAnswered, d.Outcome)
				assert.Contains(w.t, []State{Sent, InDoubt}, d.ReplyState)
				if d.ReplyState == Sent {
					assert.Len(w.t, w.replied(), 1)
				}
				assert.LessOrEqual(w.t, len(w.replied()), 1)
				assert.Zero(w.t, w.left())
			},
		},
		"dead letter": {
			steps: []string{"decision", "letter", "letter state", "settled"},
			call: func(ctx context.Context, u *Upstream, c Claim) error {
				_, err := u.Dead(ctx, c, failed())
				return err
			},
			after: func(w *world, _ Claim) {
				assert.Equal(w.t, []string{"job"}, w.results())
				assert.Equal(w.t, Kept, w.decision("job").LetterState)
				assert.Len(w.t, w.letters(), 1)
				assert.Empty(w.t, w.replied())
				assert.Zero(w.t, w.left())
			},
		},
		"superseded": {
			steps: []string{"superseded", "settled"},
			before: func(w *world, c Claim) {
				_, err := w.agent().Answer(fleet.Context(w.t), w.by("zero", c), done("first"))
				require.NoError(w.t, err)
			},
			call: func(ctx context.Context, u *Upstream, c Claim) error {
				_, err := u.Answer(ctx, c, done("second"))
				return err
			},
			after: func(w *world, _ Claim) {
				assert.Equal(w.t, []string{"answer.job.zero", "job", "superseded.job.one"}, w.results())
				assert.Equal(w.t, "second", w.answer("superseded.job.one").Reply)
				assert.Len(w.t, w.replied(), 1)
				assert.Zero(w.t, w.left())
			},
		},
		"given back": {
			steps: []string{"freed", "settled"},
			call: func(ctx context.Context, u *Upstream, c Claim) error {
				_, err := u.GiveBack(ctx, c, 0)
				return err
			},
			after: func(w *world, c Claim) {
				again := w.taken(w.pull(c.ID, "two"))
				assert.EqualValues(w.t, 2, again.Copy)
				assert.Equal(w.t, 1, again.Attempt)
				assert.EqualValues(w.t, 1, w.left())
			},
		},
	}
}

// each runs a test for each step of each telling, each on a message of its own.
func each(t *testing.T, run func(t *testing.T, tell telling, at int)) {
	for name, tell := range tellings() {
		for at, s := range tell.steps {
			t.Run(name+"/"+s, func(t *testing.T) {
				t.Parallel()
				run(t, tell, at)
			})
		}
	}
}

func (tell telling) message(w *world) Claim {
	c := w.message("job", "one")
	if tell.before != nil {
		tell.before(w, c)
	}
	return c
}

var errKilled = errors.New("killed")

// after does something after a step.
func after(u *Upstream, last string, do func()) {
	u.reached = func(s string) {
		if s == last {
			do()
		}
	}
}

// killed ends a call after a step.
func killed(u *Upstream, last string, call func() error) (err error) {
	defer func() {
		if recover() != nil {
			err = errKilled
		}
	}()
	after(u, last, func() { panic(errKilled) })
	return call()
}

func TestAKillAfterEachStep(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, tell telling, at int) {
		w := newWorld(t, fleet.Start(t))
		c := tell.message(w)
		dying := w.agent()
		require.ErrorIs(t, killed(dying, tell.steps[at], func() error { return tell.call(fleet.Context(t), dying, c) }), errKilled)
		require.NoError(t, tell.call(fleet.Context(t), w.agent(), c))
		tell.after(w, c)
	})
}

// A ledger is read again and again if the agent dies each time before it drops its claim.
func TestAKillAfterEveryStepInTurn(t *testing.T) {
	t.Parallel()
	for name, tell := range tellings() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, fleet.Start(t))
			c := tell.message(w)
			for _, s := range tell.steps {
				dying := w.agent()
				if err := killed(dying, s, func() error { return tell.call(fleet.Context(t), dying, c) }); err != nil {
					require.ErrorIs(t, err, errKilled)
				}
			}
			require.NoError(t, tell.call(fleet.Context(t), w.agent(), c))
			tell.after(w, c)
		})
	}
}

func TestTheServerRestartsAfterEachStep(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, tell telling, at int) {
		s := fleet.Start(t)
		w := newWorld(t, s)
		c := tell.message(w)
		_, js := s.Connect(t)
		u := w.agentOn(js)
		after(u, tell.steps[at], func() {
			s.Restart(t)
			w.connected() // who is away when the reply comes has to look in the bucket
		})
		insist(t, js.Conn(), func() error {
			err := tell.call(fleet.Context(t), u, c)
			u.reached = func(string) {}
			return err
		})
		tell.after(w, c)
	})
}

// throughProxy is a world with a claim for tell, whose agent reaches the server through a proxy.
func throughProxy(t *testing.T, tell telling) (w *world, c Claim, p *fleet.Proxy, u *Upstream) {
	s := fleet.Start(t)
	w = newWorld(t, s)
	c = tell.message(w)
	p = fleet.NewProxy(t, s.Address())
	_, js := fleet.Connect(t, p.URL())
	return w, c, p, w.agentOn(js)
}

func TestTheConnectionIsCutAfterEachStep(t *testing.T) {
	t.Parallel()
	for name, cut := range map[string]func(*fleet.Proxy){"cut": (*fleet.Proxy).Cut, "half open": (*fleet.Proxy).HalfOpen, "held": (*fleet.Proxy).Pause} {
		for _, next := range []string{"goes on", "killed"} {
			if next == "killed" && name != "half open" {
				continue // only then may the server have taken what the agent does not know of
			}
			t.Run(name+"/"+next, func(t *testing.T) {
				each(t, func(t *testing.T, tell telling, at int) {
					w, c, p, u := throughProxy(t, tell)
					// It is away for the step after this one; for the first there is another test.
					after(u, tell.steps[at], func() {
						cut(p)
						u.patience = 50 * time.Millisecond
					})
					err := tell.call(fleet.Context(t), u, c)
					if at < len(tell.steps)-1 {
						require.Error(t, err, "the server was away")
						assert.Contains(t, err.Error(), "again")
						assert.Contains(t, err.Error(), "job (WORK:1)")
					}
					p.Heal()
					if next == "killed" {
						u.js.Conn().Close()
						_, js := fleet.Connect(t, p.URL())
						u = w.agentOn(js)
					}
					u.reached, u.patience = func(string) {}, 5*time.Second
					insist(t, u.js.Conn(), func() error { return tell.call(fleet.Context(t), u, c) })
					tell.after(w, c)
				})
			})
		}
	}
}

func TestTheConnectionIsCutBeforeTheFirstStep(t *testing.T) {
	t.Parallel()
	for name, tell := range tellings() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, c, p, u := throughProxy(t, tell)
			u.patience = 50 * time.Millisecond
			p.HalfOpen()
			require.Error(t, tell.call(fleet.Context(t), u, c))
			p.Heal()
			u.patience = 5 * time.Second
			insist(t, u.js.Conn(), func() error { return tell.call(fleet.Context(t), u, c) })
			tell.after(w, c)
		})
	}
}

// An answer that the connection took with it never comes, so nothing waits for it: the message would go to another agent.
func TestTheConnectionBreaksAmidAStep(t *testing.T) {
	t.Parallel()
	for name, tell := range tellings() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, c, p, u := throughProxy(t, tell)
			u.patience = time.Hour
			p.HalfOpen()
			ended := make(chan error)
			go func() { ended <- tell.call(context.Background(), u, c) }()
			require.Eventually(t, func() bool { return p.Missed() > 0 }, 5*time.Minute, time.Millisecond)
			p.Heal()
			require.ErrorIs(t, <-ended, nats.ErrDisconnected)
			insist(t, u.js.Conn(), func() error { return tell.call(fleet.Context(t), u, c) })
			tell.after(w, c)
		})
	}
}

// insist calls again until that comes through, as an agent does that keeps its claim.
func insist(t *testing.T, nc *nats.Conn, call func() error) {
	require.Eventually(t, func() bool { return nc.IsConnected() && call() == nil }, 5*time.Minute, 10*time.Millisecond)
}

// connected waits until the rig's own connection is back.
func (w *world) connected() {
	require.Eventually(w.t, func() bool { return w.nc.IsConnected() && w.nc.FlushTimeout(time.Second) == nil }, 5*time.Minute, time.Millisecond)
}

func TestManyAgentsFinishAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fleet.Start(t))
	c := w.pull(w.sent("job"), "")
	const agents = 8
	fates, errs := make(chan Fate, agents), make(chan error, agents)
	for n := range agents {
		go func() {
			mine := c
			mine.Agent, mine.Copy = string(rune('a'+n)), uint64(2+n)
			u, err := Open(fleet.Context(t), w.js, stream)
			var s Standing
			if err == nil {
				s, err = u.Take(fleet.Context(t), mine)
			}
			if mine.Lease = s.Lease; err == nil {
				var f Fate
				f, err = u.Answer(fleet.Context(t), mine, done("by "+mine.Agent))
				fates <- f
			}
			errs <- err
		}()
	}
	won := 0
	for range agents {
		require.NoError(t, <-errs)
		f := <-fates
		if f.Outcome == WasAnswered {
			won++
		}
	}
	assert.Equal(t, 1, won)
	assert.Len(t, w.results(), 2+agents-1, "a decision, its text, and what came later")
	require.Len(t, w.replied(), 1)
	assert.Equal(t, "by "+w.decision("job").Agent, string(w.replied()[0].Data))
	assert.Zero(t, w.left())
}

func TestTheStreamIsDeletedAndMadeAnew(t *testing.T) {
	t.Parallel()
	for name, tell := range tellings() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, fleet.Start(t))
			c := tell.message(w)
			u := w.agent()
			require.NoError(t, w.js.DeleteStream(fleet.Context(t), stream))
			err := tell.call(fleet.Context(t), u, c)
			require.ErrorIs(t, err, jetstream.ErrStreamNotFound)
			assert.Contains(t, err.Error(), "the stream WORK is not there: if somebody deleted it, `heartbeat-nats setup --stream WORK` makes it anew")

			w.makeStream()
			other := w.message("other", "two")
			require.Equal(t, c.Seq, other.Seq)
			require.NoError(t, tell.call(fleet.Context(t), u, c))
			assert.EqualValues(t, 1, w.left(), "the message that has its sequence now stays")
			left, err := u.Drop(fleet.Context(t), c)
			require.NoError(t, err)
			assert.Equal(t, "the stream WORK was deleted and made anew since message job (WORK:1) came: there is nothing left to acknowledge", left)
			require.NoError(t, u.Keep(fleet.Context(t), other))
		})
	}
}

func TestTheConsumerIsGone(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fleet.Start(t))
	c := w.message("job", "one")
	require.NoError(t, w.js.DeleteConsumer(fleet.Context(t), stream, message.Consumer(subject)))
	u := w.agent()
	require.ErrorIs(t, u.Keep(fleet.Context(t), c), nats.ErrNoResponders)
	fate, err := u.Answer(fleet.Context(t), c, done("it is done"))
	require.NoError(t, err)
	assert.Contains(t, fate.Left, "the consumer hb_work=2Ereview was deleted or made anew since message job (WORK:1) came")
	assert.EqualValues(t, 1, w.left())

	_, err = w.js.CreateConsumer(fleet.Context(t), stream, jetstream.ConsumerConfig{Durable: message.Consumer(subject), AckPolicy: jetstream.AckExplicitPolicy})
	require.NoError(t, err)
	u.patience = 100 * time.Millisecond // the new one does not answer before it handed the message out
	left := ""
	insist(t, w.nc, func() error { left, err = u.Drop(fleet.Context(t), c); return err })
	assert.NotEmpty(t, left)
	u.patience = time.Minute
	again := w.pull("job", "two")
	there, err := known(u, "job", 0)
	require.NoError(t, err)
	require.NotNil(t, there)
	left, err = u.Drop(fleet.Context(t), again)
	require.NoError(t, err)
	assert.Empty(t, left)
	assert.Zero(t, w.left())
}

func TestABucketIsGone(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fleet.Start(t))
	c := w.message("job", "one")
	u := w.agent()
	require.NoError(t, w.js.DeleteKeyValue(fleet.Context(t), message.Bucket(stream)))
	for range 2 { // it is looked up again
		_, err := u.Answer(fleet.Context(t), c, done("it is done"))
		require.Error(t, err)
		assert.Contains(t, err.Error(), "`heartbeat-nats setup --stream WORK` makes it")
	}
	assert.EqualValues(t, 1, w.left())
	w.makeBucket(message.Bucket(stream))
	_, err := u.Answer(fleet.Context(t), c, done("it is done"))
	require.NoError(t, err)
	assert.Zero(t, w.left())
}
