package upstream

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/fleet/message"
	"heartbeat/internal/testing/fleet"
)

func (w *world) objects() int {
	store, err := w.js.ObjectStore(fleet.Context(w.t), message.Replies(stream))
	require.NoError(w.t, err)
	all, err := store.List(fleet.Context(w.t))
	if err != nil {
		require.ErrorIs(w.t, err, jetstream.ErrNoObjectsFound)
	}
	return len(all)
}

func TestALongReply(t *testing.T) {
	t.Parallel()
	for name, size := range map[string]struct{ most, reply int }{
		"5 MB where 1 MB is the most":    {1 << 20, 5 << 20},
		"100 KB where 16 KB is the most": {16 << 10, 100 << 10},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, fleet.Start(t, func(o *server.Options) { o.MaxPayload = int32(size.most) }))
			c := w.message("job", "one")
			text := strings.Repeat("\x00é<", size.reply/4)
			for _, last := range []string{"object", "decision"} {
				dying := w.agent()
				require.ErrorIs(t, killed(dying, last, func() error {
					_, err := dying.Answer(fleet.Context(t), c, done(text))
					return err
				}), errKilled)
			}
			_, err := w.agent().Answer(fleet.Context(t), c, done(text))
			require.NoError(t, err)
			a := w.answer("answer.job.one")
			assert.Empty(t, a.Reply)
			assert.EqualValues(t, len(text), a.Bytes)
			got, err := Reply(fleet.Context(t), w.js, stream, a)
			require.NoError(t, err)
			assert.True(t, got == text)
			assert.Equal(t, 1, w.objects())
			assert.Equal(t, InDoubt, w.decision("job").ReplyState)
			assert.Zero(t, w.left())

			c = w.message("job 2", "one")
			_, err = w.agent().Answer(fleet.Context(t), c, done(text))
			require.NoError(t, err)
			require.Len(t, w.replied(), 1)
			m := w.replied()[0]
			assert.Empty(t, m.Data)
			got, err = Reply(fleet.Context(t), w.js, stream, Answer{Settled: Settled{ID: "job 2"}, Object: m.Header.Get(HeaderObject)})
			require.NoError(t, err)
			assert.True(t, got == text)
		})
	}
}

// A store that takes the info of an object and not its parts has no object.
func TestALongReplyIntoAFullStore(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fleet.Start(t))
	c := w.message("job", "one")
	u, text := w.agent(), strings.Repeat("x", 1<<20)
	store, err := w.js.Stream(fleet.Context(t), "OBJ_"+message.Replies(stream))
	require.NoError(t, err)
	config := store.CachedInfo().Config
	config.MaxBytes = 100 << 10
	_, err = w.js.UpdateStream(fleet.Context(t), config)
	require.NoError(t, err)
	for range 2 {
		_, err = u.Answer(fleet.Context(t), c, done(text))
		require.ErrorContains(t, err, "maximum bytes exceeded")
	}
	assert.Empty(t, w.results())
	config.MaxBytes = -1
	_, err = w.js.UpdateStream(fleet.Context(t), config)
	require.NoError(t, err)
	_, err = u.Answer(fleet.Context(t), c, done(text))
	require.NoError(t, err)
	got, err := Reply(fleet.Context(t), w.js, stream, w.answer("answer.job.one"))
	require.NoError(t, err)
	assert.True(t, got == text)
}

func TestALongReplyWithoutAnObjectStore(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fleet.Start(t))
	c := w.message("job", "one")
	u := w.agent()
	require.NoError(t, w.js.DeleteObjectStore(fleet.Context(t), message.Replies(stream)))
	_, err := u.Answer(fleet.Context(t), c, done(strings.Repeat("x", 1<<20)))
	require.Error(t, err)
	assert.Contains(t, err.Error(), "put its 1048576 bytes into the object store WORK-replies: ")
	assert.Contains(t, err.Error(), "if it is not there, `heartbeat-nats setup --stream WORK` makes it")
	assert.EqualValues(t, 1, w.left())
	assert.Empty(t, w.results())
}

func TestALongDeadLetter(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fleet.Start(t, func(o *server.Options) { o.MaxPayload = 32 << 10 }))
	c := w.message("job", "one")
	l := failed()
	l.Payload = bytes.Repeat([]byte("x"), 30<<10)
	l.Detail = strings.Repeat("é\r\n", 9000)
	for range 1000 {
		l.History = append(l.History, strings.Repeat("h", 200))
	}
	_, err := w.agent().Dead(fleet.Context(t), c, l)
	require.NoError(t, err)
	require.Len(t, w.letters(), 1)
	m := w.letters()[0]
	assert.Empty(t, m.Data)
	assert.Len(t, m.Header.Values(HeaderHistory), maxHistory)
	got, err := Reply(fleet.Context(t), w.js, stream, Answer{Object: m.Header.Get(HeaderObject)})
	require.NoError(t, err)
	assert.Equal(t, string(l.Payload), got)
	assert.Zero(t, w.left())
}

func TestIDs(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fleet.Start(t))
	for _, id := range []string{"a.b", "work.>", "*", "two words", "$KV.x", "=h00", "é", "\xff", long} {
		c := w.message(id, "one.of *>é")
		u := w.agent()
		require.NoError(t, u.Keep(fleet.Context(t), c))
		_, err := u.Answer(fleet.Context(t), c, done(id))
		require.NoError(t, err, "%q", id)
		assert.Equal(t, strings.ToValidUTF8(id, "\uFFFD"), w.decision(id).ID)
		fate, err := u.Answer(fleet.Context(t), c, done(id))
		require.NoError(t, err, "%q", id)
		assert.Equal(t, WasAnswered, fate.Outcome, "%q is known for its own again", id)

		c = w.message(id+"2", "one.of *>")
		_, err = u.Dead(fleet.Context(t), c, failed())
		require.NoError(t, err, "%q", id)
		c = w.message(id+"3", "one.of *>")
		_, err = u.GiveBack(fleet.Context(t), c, 0)
		require.NoError(t, err, "%q", id)
		c = w.taken(w.pull(id+"3", "one.of *>"))
		_, err = u.Answer(fleet.Context(t), c, done(id))
		require.NoError(t, err, "%q", id)
	}
	assert.Zero(t, w.left())
	assert.Len(t, w.replied(), 18)
	assert.Len(t, w.letters(), 9)
}

// long has 1000 bytes of many kinds, and is not UTF-8 at its end.
var long = strings.Repeat("a.b * >\x01=h é", 100)[:1000]

// again is a message that was requeued so often.
func (w *world) again(agent string, n int) Claim {
	c := w.pull(w.sent("job"), agent)
	c.Again = n
	return w.taken(c)
}

func TestARequeuedDeadLetter(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fleet.Start(t))
	u := w.agent()
	_, err := u.Dead(fleet.Context(t), w.message("job", "one"), failed())
	require.NoError(t, err)
	there, err := known(u, "job", 0)
	require.NoError(t, err)
	require.NotNil(t, there)

	for again := 1; again <= 2; again++ {
		there, err = known(u, "job", again)
		require.NoError(t, err)
		assert.Nil(t, there, "it is to be done again")
		c := w.again("two", again)
		dying := w.agent()
		require.ErrorIs(t, killed(dying, "letter", func() error {
			_, err := dying.Dead(fleet.Context(t), c, failed())
			return err
		}), errKilled)
		_, err = w.agent().Dead(fleet.Context(t), c, failed())
		require.NoError(t, err)
		assert.Len(t, w.letters(), again+1)
	}

	c := w.again("three", 3)
	fate, err := u.Answer(fleet.Context(t), c, done("at last"))
	require.NoError(t, err)
	assert.Equal(t, WasAnswered, fate.Outcome)
	late := w.pull(w.sent("job"), "four")
	late.Again = 9
	fate, err = u.Answer(fleet.Context(t), late, done("too late"))
	require.NoError(t, err)
	assert.Equal(t, Superseded, fate.Outcome, "an answer is not undone")
	assert.Len(t, w.replied(), 1)
	assert.Zero(t, w.left())
}

// An id may come again once its decision is forgotten, while its letter is kept. The second message has a letter of its
// own, and one only, also if its agent is dead for longer than the server's window.
func TestALetterBesideAnOlderOne(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fleet.Start(t))
	ctx := fleet.Context(t)
	_, err := w.js.UpdateStream(ctx, jetstream.StreamConfig{Name: message.Dead(stream), Subjects: []string{message.DeadSubjects(stream)}, Duplicates: 100 * time.Millisecond})
	require.NoError(t, err)
	_, err = w.agent().Dead(ctx, w.message("job", "one"), failed())
	require.NoError(t, err)
	results, err := w.js.Stream(ctx, "KV_"+message.Bucket(stream))
	require.NoError(t, err)
	want := []string{"please do it"}
	for _, step := range []string{"decision", "letter", "letter state"} {
		require.NoError(t, results.Purge(ctx))
		c, next := w.message("job", "one"), failed()
		next.Payload = []byte(step)
		dying := w.agent()
		require.ErrorIs(t, killed(dying, step, func() error {
			_, err := dying.Dead(ctx, c, next)
			return err
		}), errKilled)
		first := true
		require.Eventually(t, func() bool { // the server forgets the id of a probe after that of the letter
			probe := nats.NewMsg(message.DeadSubject(stream, "probe"))
			probe.Header.Set(message.HeaderMsgID, step)
			ack, err := w.js.PublishMsg(ctx, probe)
			isOver := !first && err == nil && !ack.Duplicate
			first = false
			return isOver
		}, 5*time.Minute, time.Millisecond)
		_, err = w.agent().Dead(ctx, c, next)
		require.NoError(t, err)
		want = append(want, step)
	}
	var texts []string
	for _, m := range w.letters() {
		if m.Header.Get(message.HeaderID) == "job" {
			texts = append(texts, string(m.Data))
		}
	}
	assert.Equal(t, want, texts)
}

// A message that was requeued while its agent was away has no letter any more.
func TestALetterThatWasRequeuedIsNotPublishedAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fleet.Start(t))
	c := w.message("job", "one")
	dying := w.agent()
	require.ErrorIs(t, killed(dying, "letter state", func() error {
		_, err := dying.Dead(fleet.Context(t), c, failed())
		return err
	}), errKilled)
	dead, err := w.js.Stream(fleet.Context(t), message.Dead(stream))
	require.NoError(t, err)
	require.NoError(t, dead.Purge(fleet.Context(t)))
	d := w.decision("job")
	d.LetterState = Requeued
	_, err = dying.put(fleet.Context(t), "job", d, whatever)
	require.NoError(t, err)

	_, err = w.agent().Dead(fleet.Context(t), c, failed())
	require.NoError(t, err)
	info, err := dead.Info(fleet.Context(t))
	require.NoError(t, err)
	assert.Zero(t, info.State.Msgs)
	assert.Equal(t, Requeued, w.decision("job").LetterState)
	assert.Zero(t, w.left())
}

// Headers have 64 KiB at the most, and a server may take less in all.
func TestALetterWithLongHeaders(t *testing.T) {
	t.Parallel()
	for _, most := range []int32{16 << 10, 1 << 20} {
		w := newWorld(t, fleet.Start(t, func(o *server.Options) { o.MaxPayload = most }))
		c := w.message("job", "one")
		c.ID = strings.Repeat("x", message.MaxID)
		l := failed()
		l.Detail = strings.Repeat("d", 100_000)
		for range 60 {
			l.History = append(l.History, strings.Repeat("h", 5000))
		}
		_, err := w.agent().Dead(fleet.Context(t), c, l)
		require.NoError(t, err)
		require.Len(t, w.letters(), 1)
	}
}

func TestAnAnswerAfterItsOwnDeadLetter(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fleet.Start(t))
	c := w.message("job", "one")
	_, err := w.agent().Dead(fleet.Context(t), c, failed())
	require.NoError(t, err)
	fate, err := w.agent().Answer(fleet.Context(t), c, done("here it was requeued"))
	require.NoError(t, err)
	assert.Equal(t, Superseded, fate.Outcome)
	assert.Equal(t, []string{"job", "superseded.job.one"}, w.results())
	assert.Empty(t, w.replied())
}

func TestWhatAnAgentMayNotDo(t *testing.T) {
	t.Parallel()
	deny := func(subjects ...string) func(*server.Options) {
		return func(o *server.Options) {
			o.Users = []*server.User{
				{Username: "all"},
				{Username: "agent", Permissions: &server.Permissions{Publish: &server.SubjectPermission{Deny: subjects}}},
			}
			o.NoAuthUser = "all"
		}
	}
	t.Run("reply", func(t *testing.T) {
		s := fleet.Start(t, deny(message.ReplySubject(stream, "*")))
		w := newWorld(t, s)
		_, js := s.Connect(t, nats.UserInfo("agent", ""))
		fate, err := w.agentOn(js).Answer(fleet.Context(t), w.message("job", "one"), done("it is done"))
		require.NoError(t, err)
		assert.Equal(t, Refused, fate.Decision.ReplyState)
		assert.Equal(t, Refused, w.decision("job").ReplyState)
		assert.Zero(t, w.left())
	})
	t.Run("decide", func(t *testing.T) {
		s := fleet.Start(t, deny("$KV."+message.Bucket(stream)+".job"))
		w := newWorld(t, s)
		_, js := s.Connect(t, nats.UserInfo("agent", ""))
		u := w.agentOn(js)
		u.patience = 5 * time.Second // in which the server has said no
		_, err := u.Answer(fleet.Context(t), w.message("job", "one"), done("it is done"))
		require.Error(t, err)
		assert.Contains(t, err.Error(), `the server's last refusal: nats: permissions violation: Permissions Violation for Publish to "$KV.WORK-results.job"`)
		assert.EqualValues(t, 1, w.left())
	})
}

func TestTheServerDoesNotAnswerInTime(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fleet.Start(t))
	u := w.agent()
	u.patience = time.Nanosecond
	_, err := u.Answer(fleet.Context(t), w.message("job", "one"), done("it is done"))
	require.ErrorIs(t, err, context.DeadlineExceeded)
	assert.ErrorContains(t, err, "did not answer within 1ns: its log says why")
	assert.EqualValues(t, 1, w.left())
}

func TestTheServerIsFull(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fleet.Start(t))
	c := w.message("job", "one")
	s, err := w.js.Stream(fleet.Context(t), "KV_"+message.Bucket(stream))
	require.NoError(t, err)
	roomy := s.CachedInfo().Config
	full := roomy
	full.MaxBytes, full.Discard = 1, jetstream.DiscardNew
	_, err = w.js.UpdateStream(fleet.Context(t), full)
	require.NoError(t, err)
	_, err = w.agent().Answer(fleet.Context(t), c, done("it is done"))
	require.ErrorContains(t, err, "maximum bytes exceeded")
	assert.EqualValues(t, 1, w.left())
	_, err = w.js.UpdateStream(fleet.Context(t), roomy)
	require.NoError(t, err)
	_, err = w.agent().Answer(fleet.Context(t), c, done("it is done"))
	require.NoError(t, err)
	assert.Zero(t, w.left())
}

// A decision by hand, or of another program, is not taken for one.
func TestADecisionThatIsNone(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fleet.Start(t))
	kv, err := w.js.KeyValue(fleet.Context(t), message.Bucket(stream))
	require.NoError(t, err)
	for _, value := range []string{"", "no", "{}"} {
		_, err = kv.PutString(fleet.Context(t), "job", value)
		require.NoError(t, err)
		_, err = known(w.agent(), "job", 0)
		assert.ErrorContains(t, err, "look at the key job of the bucket WORK-results")
	}
}
