package upstream

import (
	"testing"
	"time"

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
	known, err := u.Known(fleet.Context(t), "job", 0)
	require.NoError(t, err)
	assert.Nil(t, known)

	steps := recorded(u)
	fate, err := u.Answer(fleet.Context(t), c, done("it is done"))
	require.NoError(t, err)
	assert.Equal(t, []step{stepText, stepDecision, stepReply, stepReplyState, stepSettled}, *steps)
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
	assert.Equal(t, []step{stepText, stepDecision, stepSettled}, *steps)
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
	assert.Equal(t, []step{stepDecision, stepLetter, stepLetterDone, stepSettled}, *steps)
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
		message.HeaderMsgID: "job~0",
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
			other := first
			other.Agent = "two"
			_, err := w.agent().Answer(fleet.Context(t), first, done("first"))
			require.NoError(t, err)
			fate, err := second(w.agent(), other)
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
	n, err := u.GivenBack(fleet.Context(t), "job", c.Seq)
	require.NoError(t, err)
	assert.Equal(t, 1, n)
	again := w.pull("job", "two")
	assert.EqualValues(t, 2, again.Copy)
	_, err = u.GiveBack(fleet.Context(t), again, time.Millisecond)
	require.NoError(t, err)
	third := w.pull("job", "one")
	n, err = u.GivenBack(fleet.Context(t), "job", c.Seq)
	require.NoError(t, err)
	assert.Equal(t, 2, n)
	_, err = u.Answer(fleet.Context(t), third, done("at last"))
	require.NoError(t, err)
	assert.Empty(t, w.keys(message.Agents(stream)), "the count goes with the message")
}

func TestWhatIsSettledElsewhereIsNotCounted(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fleet.Start(t))
	c := w.message("job", "one")
	c.Agent = "zero"
	_, err := w.agent().Answer(fleet.Context(t), c, done("first"))
	require.NoError(t, err)
	c.Agent = "one"
	_, err = w.agent().GiveBack(fleet.Context(t), c, 0)
	require.NoError(t, err)
	assert.Empty(t, w.keys(message.Agents(stream)))
}

func TestAMessageThatIsGivenBackVeryOften(t *testing.T) {
	w := newWorld(t, fleet.Start(t))
	c := w.message("job", "one")
	u := w.agent()
	for range maxCopies + 2 {
		require.NoError(t, u.count(fleet.Context(t), c))
		require.NoError(t, u.count(fleet.Context(t), c)) // told again
		c.Copy++
	}
	n, err := u.GivenBack(fleet.Context(t), "job", c.Seq)
	require.NoError(t, err)
	assert.Equal(t, maxCopies+2, n, "none of these is an attempt")
}
