package upstream

import (
	"context"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/fleet/message"
	"heartbeat/internal/testing/fleet"
)

// An agent that no longer holds a message decides nothing, although nobody else has decided yet.
func TestAnAgentThatLostItsLease(t *testing.T) {
	t.Parallel()
	for name, tell := range map[string]func(*Upstream, Claim) (Fate, error){
		"an answer":     func(u *Upstream, c Claim) (Fate, error) { return u.Answer(t.Context(), c, done("late")) },
		"a dead letter": func(u *Upstream, c Claim) (Fate, error) { return u.Dead(t.Context(), c, failed()) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, fleet.Start(t))
			c := w.message("job", "one")
			other := w.by("two", c)
			assert.Equal(t, 2, other.Attempt)
			fate, err := tell(w.agent(), c)
			require.NoError(t, err)
			assert.Equal(t, Superseded, fate.Outcome)
			assert.Equal(t, "two", fate.Decision.Agent)
			assert.Equal(t, []string{"superseded.job.one"}, w.results())
			assert.Empty(t, w.replied())
			assert.EqualValues(t, 1, w.left(), "the other one works on it")

			fate, err = w.agent().Answer(fleet.Context(t), other, done("first"))
			require.NoError(t, err)
			assert.Equal(t, WasAnswered, fate.Outcome)
			assert.Len(t, w.replied(), 1)
			assert.Zero(t, w.left())
		})
	}
}

func TestTake(t *testing.T) {
	t.Parallel()
	ctx := fleet.Context(t)
	w := newWorld(t, fleet.Start(t))
	u := w.agent()
	first := w.pull(w.sent("job"), "one")
	first.Taken = time.Now()
	take := func(c Claim) Standing {
		s, err := u.Take(ctx, c)
		require.NoError(t, err)
		return s
	}
	mine := take(first)
	assert.Equal(t, 1, mine.Attempt)
	assert.Equal(t, mine, take(first), "the server's answer was lost")

	second := first
	second.Agent, second.Copy = "two", 2
	theirs := take(second)
	assert.Equal(t, 2, theirs.Attempt)
	assert.Equal(t, Standing{With: "two"}, take(first), "an older copy")
	for c, want := range map[*Claim]Standing{&first: {With: "two"}, &second: {Lease: theirs.Lease, Attempt: 2}} {
		s, err := u.Stand(ctx, *c)
		require.NoError(t, err)
		assert.Equal(t, want, s)
	}

	again := second
	again.Copy = 3
	assert.Equal(t, 3, take(again).Attempt, "the same agent, whose ledger is lost")

	twin := w.pull(w.sent("job"), "three")
	assert.Equal(t, Standing{With: "two", Twin: true}, take(twin))
	s, err := w.js.Stream(ctx, stream)
	require.NoError(t, err)
	require.NoError(t, s.DeleteMsg(ctx, first.Seq))
	assert.Equal(t, 1, take(twin).Attempt, "somebody removed the one before")

	_, err = u.Answer(ctx, w.taken(twin), done("it is done"))
	require.NoError(t, err)
	late := w.pull(w.sent("job"), "four")
	known := take(late).Known
	require.NotNil(t, known)
	assert.Equal(t, WasAnswered, known.Outcome)
}

// An answer leaves its lease as it is, and the decision counts: nobody takes the message again, in any copy or life.
func TestTheLeaseOfAnAnswer(t *testing.T) {
	t.Parallel()
	ctx := fleet.Context(t)
	w := newWorld(t, fleet.Start(t))
	c := w.message("job", "one")
	dying := w.agent()
	require.ErrorIs(t, killed(dying, "decision", func() error {
		_, err := dying.Answer(ctx, c, done("it is done"))
		return err
	}), errKilled)
	l, _, err := w.agent().lease(ctx, "job")
	require.NoError(t, err)
	assert.False(t, l.Settled)
	for _, agent := range []string{"one", "two"} {
		for _, copy := range []uint64{c.Copy, c.Copy + 1} {
			next := c
			next.Agent, next.Copy = agent, copy
			s, err := w.agent().Take(ctx, next)
			require.NoError(t, err)
			require.NotNil(t, s.Known, "copy %d for agent %s", copy, agent)
			assert.Equal(t, WasAnswered, s.Known.Outcome)
		}
	}
	c.Taken = time.Time{} // as in the next life, whose ledger and inbox may come from a backup
	for _, c.Agent = range []string{"one", "two"} {
		s, err := w.agent().Stand(ctx, c)
		require.NoError(t, err)
		require.NotNil(t, s.Known, "agent %s", c.Agent)
	}
}

// An agent of the release before does not look for a decision before it takes the lease of another one, and ends it
// with its own. What it answers counts no more.
func TestAnAgentThatTakesTheLeaseOfAnAnswer(t *testing.T) {
	t.Parallel()
	ctx := fleet.Context(t)
	w := newWorld(t, fleet.Start(t))
	c := w.message("job", "one")
	dying := w.agent()
	require.ErrorIs(t, killed(dying, "reply", func() error {
		_, err := dying.Answer(ctx, c, done("it is done"))
		return err
	}), errKilled)
	other := w.agent()
	other.keeps.Store(int64(time.Hour)) // so it ends the lease
	next := c
	next.Agent, next.Copy, next.Attempt = "two", c.Copy+1, 2
	lease := leaseOf(next)
	lease.Agent = next.Agent
	var err error
	next.Lease, err = other.put(ctx, message.LeaseKey("job"), lease, c.Lease)
	require.NoError(t, err)
	fate, err := other.Answer(ctx, next, done("once more"))
	require.NoError(t, err)
	assert.Equal(t, Superseded, fate.Outcome)
	assert.Equal(t, "one", w.decision("job").Agent)
	fate, err = w.agent().Answer(ctx, c, done("it is done"))
	require.NoError(t, err)
	assert.Equal(t, WasAnswered, fate.Outcome)
	assert.Len(t, w.replied(), 1)
	assert.Zero(t, w.left())
}

// Whoever takes over a lease learns of an answer that came meanwhile.
func TestAnAnswerWhileTheLeaseIsTakenOver(t *testing.T) {
	t.Parallel()
	ctx := fleet.Context(t)
	w := newWorld(t, fleet.Start(t))
	c := w.message("job", "one")
	u := w.agent()
	u.Rest = func(context.Context, Lease, uint64) (time.Duration, error) {
		_, err := w.agent().Answer(ctx, c, done("it is done"))
		return 0, err
	}
	next := c
	next.Agent, next.Copy = "two", c.Copy+1
	s, err := u.Take(ctx, next)
	require.NoError(t, err)
	require.NotNil(t, s.Known)
	assert.Equal(t, "one", s.Known.Agent)
}

// A turn may take longer than a lease is kept.
func TestALeaseThatIsNoLongerKept(t *testing.T) {
	t.Parallel()
	ctx := fleet.Context(t)
	w := newWorld(t, fleet.Start(t))
	u := w.agent()
	c := w.message("job", "one")
	require.NoError(t, u.Results.Delete(ctx, message.LeaseKey("job")))
	fate, err := u.Answer(ctx, c, done("it is done"))
	require.NoError(t, err)
	assert.Equal(t, WasAnswered, fate.Outcome)
	assert.Zero(t, w.left())

	// Neither is the decision: the message is off the stream.
	require.NoError(t, u.Results.Delete(ctx, message.LeaseKey("job")))
	require.NoError(t, u.Results.Delete(ctx, message.Key("job")))
	c.Agent = "two"
	fate, err = u.Answer(ctx, c, done("too late"))
	require.NoError(t, err)
	assert.Equal(t, Superseded, fate.Outcome)
	assert.Len(t, w.replied(), 1)
	u.fence = time.Nanosecond // a machine that slept between the server's answer and here
	c.Copy = 1
	s, err := u.Take(ctx, c)
	require.NoError(t, err)
	assert.Equal(t, Standing{Known: &Record{}}, s)
}

// A message that could not be taken off its stream before its result expired is not worked on again, and the next
// life of its agent does not reply again.
func TestAResultThatIsNoLongerKept(t *testing.T) {
	t.Parallel()
	ctx := fleet.Context(t)
	w := newWorld(t, fleet.Start(t))
	u := w.agent()
	u.keeps.Store(int64(time.Second))
	c := w.message("job", "one")
	require.ErrorIs(t, killed(u, "reply state", func() error {
		_, err := u.Answer(ctx, c, done("it is done"))
		return err
	}), errKilled)
	require.Eventually(t, func() bool {
		there, err := known(w.agent(), "job", 0)
		return err == nil && there == nil
	}, 5*time.Minute, 10*time.Millisecond)

	next := c
	next.Agent, next.Copy = "two", c.Copy+1
	s, err := w.agent().Take(ctx, next)
	require.NoError(t, err)
	require.NotNil(t, s.Known)
	assert.Equal(t, "agent one", s.Known.By())
	fate, err := w.agent().Answer(ctx, c, done("it is done"))
	require.NoError(t, err)
	assert.Equal(t, Superseded, fate.Outcome)
	assert.Zero(t, w.left())
	assert.Len(t, w.replied(), 1)
}

// The bucket that setup makes in the place of a deleted one need not take results that are kept for less than all else.
func TestTheBucketMadeAnewKeepsForLonger(t *testing.T) {
	t.Parallel()
	ctx := fleet.Context(t)
	w := newWorld(t, fleet.Start(t))
	u := w.agent()
	u.keeps.Store(int64(time.Hour))
	c := w.message("job", "one")
	require.NoError(t, w.js.DeleteKeyValue(ctx, message.Bucket(stream)))
	_, err := w.js.CreateStream(ctx, jetstream.StreamConfig{
		Name: "KV_" + message.Bucket(stream), Subjects: []string{"$KV." + message.Bucket(stream) + ".>"},
		MaxMsgsPerSubject: 1, AllowDirect: true, AllowAtomicPublish: true,
	})
	require.NoError(t, err)
	_, err = u.Answer(ctx, c, done("it is done"))
	require.Error(t, err)
	fate, err := u.Answer(ctx, c, done("it is done"))
	require.NoError(t, err)
	assert.Equal(t, WasAnswered, fate.Outcome)
	assert.Zero(t, w.left())
}

// A person may write anything into a bucket, and remove what is there.
func TestALeaseThatCannotBeRead(t *testing.T) {
	t.Parallel()
	ctx := fleet.Context(t)
	w := newWorld(t, fleet.Start(t))
	u := w.agent()
	spoil := func() {
		_, err := u.Results.Put(ctx, message.LeaseKey("job"), []byte("{"))
		require.NoError(t, err)
	}
	c := w.message("job", "one")
	spoil()
	s, err := u.Stand(ctx, c)
	require.NoError(t, err)
	require.NotZero(t, s.Lease)
	spoil()
	next := c
	next.Agent, next.Copy = "two", 2
	s, err = u.Take(ctx, next)
	require.NoError(t, err)
	require.NotZero(t, s.Lease)
	fate, err := u.Answer(ctx, c, done("late"))
	require.NoError(t, err)
	assert.Equal(t, Superseded, fate.Outcome)
	spoil()
	fate, err = u.Answer(ctx, next, done("it is done"))
	require.NoError(t, err)
	assert.Equal(t, WasAnswered, fate.Outcome)
	spoil()
	next.Copy = 3
	s, err = u.Take(ctx, next)
	require.NoError(t, err)
	require.NotNil(t, s.Known, "no turn is spent on what was settled")
	assert.Equal(t, WasAnswered, s.Known.Outcome)
}

// The lease of a stream that was deleted is nobody's in the one that was made anew.
func TestALeaseOfADeletedStream(t *testing.T) {
	t.Parallel()
	ctx := fleet.Context(t)
	w := newWorld(t, fleet.Start(t))
	w.message("before", "one")
	w.message("job", "one")
	require.NoError(t, w.js.DeleteStream(ctx, stream))
	w.makeStream()
	s, err := w.agent().Take(ctx, w.pull(w.sent("job"), "two"))
	require.NoError(t, err)
	assert.NotZero(t, s.Lease)
	assert.False(t, s.Twin)
}

// Nor is its message settled, once the one made anew is past its sequence.
func TestAMessageOfADeletedStream(t *testing.T) {
	t.Parallel()
	ctx := fleet.Context(t)
	w := newWorld(t, fleet.Start(t))
	c := w.message("job", "one")
	require.NoError(t, w.js.DeleteStream(ctx, stream))
	w.makeStream()
	other := w.message("other", "one")
	_, err := w.agent().Drop(ctx, other)
	require.NoError(t, err)
	require.Zero(t, w.left())
	gone, err := w.agent().Gone(ctx, c, c.Seq)
	require.NoError(t, err)
	assert.False(t, gone)
}

// A requeued message is canceled also where the decision before it is no longer kept.
func TestCancelWhatWasRequeued(t *testing.T) {
	t.Parallel()
	ctx := fleet.Context(t)
	w := newWorld(t, fleet.Start(t))
	u := w.agent()
	c := w.pull(w.sent("job"), "one")
	c.Again = 1
	known, _, err := u.Cancel(ctx, Claim{Message: message.Message{ID: "job", Seq: c.Seq, Again: 1}})
	require.NoError(t, err)
	assert.Nil(t, known)
	s, err := u.Take(ctx, c)
	require.NoError(t, err)
	require.NotNil(t, s.Known)
	assert.Equal(t, Canceled, s.Known.Reason)
}

// A person may remove what is in a bucket.
func TestADecisionThatWasRemoved(t *testing.T) {
	t.Parallel()
	ctx := fleet.Context(t)
	w := newWorld(t, fleet.Start(t))
	u := w.agent()
	remove := func(id string) {
		_, err := u.Results.Put(ctx, message.Key(id), []byte("not ours"))
		require.NoError(t, err)
		require.NoError(t, u.Results.Delete(ctx, message.Key(id)))
	}
	c := w.message("job", "one")
	remove("job")
	fate, err := u.Answer(ctx, c, done("it is done"))
	require.NoError(t, err)
	assert.Equal(t, WasAnswered, fate.Outcome)

	c = w.message("other", "one")
	remove("other")
	require.NoError(t, u.Results.Delete(ctx, message.LeaseKey("other")))
	known, _, err := u.Cancel(ctx, Claim{Message: message.Message{ID: "other", Seq: c.Seq}})
	require.NoError(t, err)
	assert.Nil(t, known)
	assert.Equal(t, Canceled, w.decision("other").Reason)
}

// A bucket of the release before takes one key at a time, until setup has changed that.
func TestABucketThatTakesOneKeyAtATime(t *testing.T) {
	t.Parallel()
	ctx := fleet.Context(t)
	w := newWorld(t, fleet.Start(t))
	c := w.message("job", "one")
	s, err := w.js.Stream(ctx, "KV_"+message.Bucket(stream))
	require.NoError(t, err)
	config := s.CachedInfo().Config
	config.AllowAtomicPublish = false
	_, err = w.js.UpdateStream(ctx, config)
	require.NoError(t, err)
	const remedy = "the bucket WORK-results: it takes one key at a time: `heartbeat-nats setup --stream WORK` changes that"
	_, err = w.agent().Answer(ctx, c, done("it is done"))
	require.ErrorContains(t, err, remedy)
	_, _, err = w.agent().Cancel(ctx, c)
	require.ErrorContains(t, err, `cancel the message "job": write that to `+remedy)
	assert.Empty(t, w.results(), "nothing is half written")
}
