package upstream

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/inbox"
	"heartbeat/internal/fleet/message"
	"heartbeat/internal/testing/fleet"
)

func done(text string) Answer {
	return Answered(inbox.Result{Attempt: 1, SessionID: "s1", AcknowledgedAt: time.Unix(1700000000, 0).UTC(), Reply: text})
}

func failed() Letter {
	l := Failed(inbox.DeadLetter{
		RawLine: inbox.RawLine{Text: `{"prompt":"please do it","id":"job"}`}, Attempts: 2, Reason: inbox.ReasonFailed,
		Failure: &inbox.Failure{Error: "api_error", Message: "no"}, DeadLetteredAt: time.Unix(1700000000, 0).UTC(),
	})
	l.History = []string{"copy 1 went to one", "copy 2 went to two"}
	return l
}

func TestAnswer(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fleet.Start(t))
	c := w.message("job", "one")
	u := w.agent()
	there, err := known(u, "job", 0)
	require.NoError(t, err)
	assert.Nil(t, there)

	steps := recorded(u)
	fate, err := u.Answer(fleet.Context(t), c, done("it is done"))
	require.NoError(t, err)
	assert.Equal(t, []string{"decision", "reply", "reply state", "settled"}, *steps)
	assert.Equal(t, WasAnswered, fate.Outcome)
	assert.Empty(t, fate.Left)
	assert.Equal(t, []string{"answer.job.one", "job"}, w.results())
	d := w.decision("job")
	assert.Equal(t, fate.Decision, d)
	assert.Equal(t, Sent, d.ReplyState)
	assert.Equal(t, "it is done", w.answer("answer.job.one").Reply)
	require.Len(t, w.replied(), 1)
	m := w.replied()[0]
	assert.Equal(t, c.Reply, m.Subject)
	assert.Equal(t, "it is done", string(m.Data))
	assert.Equal(t, "job", m.Header.Get(message.HeaderID))
	assert.Zero(t, w.left())
}

func TestAnswerWithoutAReplySubject(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fleet.Start(t))
	c := w.message("job", "one")
	c.Reply = ""
	u := w.agent()
	steps := recorded(u)
	fate, err := u.Answer(fleet.Context(t), c, done("it is done"))
	require.NoError(t, err)
	assert.Equal(t, []string{"decision", "settled"}, *steps)
	assert.Equal(t, NoReply, fate.Decision.ReplyState)
	assert.Empty(t, w.replied())
	assert.Zero(t, w.left())
}

func TestDead(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fleet.Start(t))
	c := w.message("job", "one")
	u := w.agent()
	steps := recorded(u)
	fate, err := u.Dead(fleet.Context(t), c, failed())
	require.NoError(t, err)
	assert.Equal(t, []string{"decision", "letter", "letter state", "settled"}, *steps)
	assert.Equal(t, WasDead, fate.Outcome)
	assert.Equal(t, Kept, w.decision("job").LetterState)
	assert.Empty(t, w.replied())
	assert.Zero(t, w.left())
	require.Len(t, w.letters(), 1)
	m := w.letters()[0]
	assert.Equal(t, "please do it", string(m.Data))
	for name, want := range map[string]string{
		message.HeaderID: "job", HeaderReason: "failed", HeaderDetail: "api_error: no", HeaderSubject: subject,
		HeaderSeq: "1", HeaderAttempts: "2", HeaderCopies: "1", HeaderAgent: "one", message.HeaderReply: c.Reply,
		message.HeaderMsgID: "job@3",
	} {
		assert.Equal(t, want, m.Header.Get(name), name)
	}
	assert.Equal(t, []string{"copy 1 went to one", "copy 2 went to two"}, m.Header.Values(HeaderHistory))
}

func TestTheSecondIsSuperseded(t *testing.T) {
	t.Parallel()
	for name, second := range map[string]func(*Upstream, Claim) (Fate, error){
		"an answer":     func(u *Upstream, c Claim) (Fate, error) { return u.Answer(t.Context(), c, done("mine")) },
		"a dead letter": func(u *Upstream, c Claim) (Fate, error) { return u.Dead(t.Context(), c, failed()) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, fleet.Start(t))
			first := w.message("job", "one")
			_, err := w.agent().Answer(fleet.Context(t), first, done("first"))
			require.NoError(t, err)
			fate, err := second(w.agent(), late(first, "two"))
			require.NoError(t, err)
			assert.Equal(t, Superseded, fate.Outcome)
			assert.Equal(t, "one", fate.Decision.Agent)
			assert.Equal(t, []string{"answer.job.one", "job", "superseded.job.two"}, w.results())
			assert.Equal(t, "one", w.answer("superseded.job.two").By)
			assert.Len(t, w.replied(), 1)
			assert.Empty(t, w.letters())
			assert.Zero(t, w.left())
		})
	}
}

func TestGiveBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fleet.Start(t))
	c := w.message("job", "one")
	u := w.agent()
	require.NoError(t, u.Keep(fleet.Context(t), c))
	left, err := u.GiveBack(fleet.Context(t), c, 0)
	require.NoError(t, err)
	assert.Empty(t, left)
	again := w.taken(w.pull("job", "two"))
	assert.EqualValues(t, 2, again.Copy)
	assert.Equal(t, 1, again.Attempt, "what is given back counts for no attempt")
	_, err = u.GiveBack(fleet.Context(t), again, time.Millisecond)
	require.NoError(t, err)
	third := w.taken(w.pull("job", "one"))
	assert.Equal(t, 1, third.Attempt)
	_, err = u.Answer(fleet.Context(t), third, done("at last"))
	require.NoError(t, err)
	assert.Zero(t, w.left())
}

// late is the claim of an agent that had the message before.
func late(c Claim, agent string) Claim {
	c.Agent, c.Lease = agent, 1
	return c
}

// What is said about an old copy would take the message from the agent that has it now.
func TestWhatIsWithAnotherAgentIsNotGivenBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fleet.Start(t))
	c := w.message("job", "one")
	other := w.by("two", c)
	left, err := w.agent().GiveBack(fleet.Context(t), c, 0)
	require.NoError(t, err)
	assert.Equal(t, "it is with agent two by now", left)
	fate, err := w.agent().Answer(fleet.Context(t), other, done("first"))
	require.NoError(t, err)
	assert.Equal(t, WasAnswered, fate.Outcome)
	left, err = w.agent().GiveBack(fleet.Context(t), c, 0)
	require.NoError(t, err)
	assert.Equal(t, "it was settled meanwhile", left)
}

// What an answer costs a server: a thousand agents pay for each message more.
func TestTheMessagesOfAnAnswer(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fleet.Start(t))
	nc, js := w.server.Connect(t)
	u := w.agentOn(js)
	u.patience = time.Hour
	con, err := js.Consumer(fleet.Context(t), stream, message.Consumer(subject))
	require.NoError(t, err)
	cycle := func(id string) uint64 {
		w.sent(id)
		before := nc.Stats().OutMsgs
		m, err := con.Next(jetstream.FetchMaxWait(time.Minute))
		require.NoError(t, err)
		is, err := message.Parse(m)
		require.NoError(t, err)
		c := Claim{Message: is, Agent: "one", Taken: time.Now()}
		s, err := u.Take(fleet.Context(t), c)
		require.NoError(t, err)
		c.Lease, c.Attempt = s.Lease, s.Attempt
		fate, err := u.Answer(fleet.Context(t), c, done("it is done"))
		require.NoError(t, err)
		require.Equal(t, WasAnswered, fate.Outcome)
		return nc.Stats().OutMsgs - before
	}
	assert.EqualValues(t, 6, cycle("first"), "it asks which stream that is")
	assert.EqualValues(t, 5, cycle("second"), "one to pull, the lease, two of a batch, the acknowledgement")

	require.NoError(t, nc.ForceReconnect())
	insist(t, nc, nc.Flush)
	assert.EqualValues(t, 6, cycle("third"), "another connection may be to a server with another stream")
	long := *u.seen.Load()
	long.asked = long.asked.Add(-u.patience)
	u.seen.Store(&long)
	assert.EqualValues(t, 6, cycle("fourth"), "somebody may have made the stream anew since")
}
