package queue

import (
	"errors"
	"os"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/inbox"
	recovery "heartbeat/recover"
)

var (
	seen     = Exit{Known: true, Began: true, Asked: true, Succeeded: true, Turns: 1}
	nothing  = Exit{Known: true}
	answered = []int{1, 0, 0, 0}
	queued   = []int{0, 1, 0, 0}
	dead     = []int{0, 0, 0, 1}
)

func TestTheFirstEntryIsThePrompt(t *testing.T) {
	r := newRig(t, "  do A\n", "do B", "do C")
	c, p := r.round("")
	assert.Equal(t, "  do A\n", p)
	assert.Equal(t, []int{0, 2, 1, 0}, r.fates())
	assert.Equal(t, r.Queue.round.session, c.session)
	c.start()
	c.submit(p)
	assert.Equal(t, "do B", c.stop("A done", false))
	assert.Equal(t, "do C", c.stop("B done", true))
	assert.Empty(t, c.stop("C done", true))
	c.fire("SessionEnd", nil)
	assert.Equal(t, recovery.None, r.settle(seen).Action)
	assert.Equal(t, []int{3, 0, 0, 0}, r.fates())
	assert.Equal(t, map[string]string{"  do A\n": "A done", "do B": "B done", "do C": "C done"}, r.replies())
	n, err := r.Waiting(t.Context())
	require.NoError(t, err)
	assert.Equal(t, Next{}, n)
}

// A client may begin before its host has noted its process. It is no second client beside the host, and its start is noted.
func TestTheClientBeginsBeforeItsProcessIsNoted(t *testing.T) {
	r := newRig(t, "A")
	c, _ := r.round("")
	c.start()
	require.NoError(t, r.changePrompt(t.Context(), func(tx *inbox.Tx, d *inbox.Delivery, _ recovery.Evidence) error {
		assert.True(t, recovery.Started(tx.In(c.session).Known(), d))
		return nil
	}))
}

func TestAnotherRoundGoesOnWithTheSession(t *testing.T) {
	r := newRig(t, "A")
	c, p := r.round("")
	c.start()
	c.submit(p)
	c.wrotePrompt(p)
	c.stop("A done", false)
	r.settle(seen)
	_, _, err := r.Put(t.Context(), "b", "A") // the very same text
	require.NoError(t, err)
	resume, err := r.Resumable(t.Context())
	require.NoError(t, err)
	require.Equal(t, c.session, resume)
	next, p := r.round(resume)
	assert.Equal(t, resume, next.session)
	assert.Empty(t, c.stop("late", false), "a Stop of the client before")
	assert.Equal(t, []int{1, 0, 1, 0}, r.fates())
	next.prompt = "p2"
	next.start()
	next.submit(p)
	next.stop("A again", false)
	assert.Equal(t, []int{2, 0, 0, 0}, r.fates())
}

// TestKilledClient has a client that ends at each step of its first turn.
// A hook that finds no room notes nothing: the client's own result line tells of its prompt,
// and of nothing that a hook handed over.
func TestNoStopNoted(t *testing.T) {
	said := seen
	said.Turn = &Turn{Reply: "A done"}
	r := newRig(t, "A", "B")
	c, p := r.round("")
	c.start()
	c.submit(p)
	assert.Equal(t, recovery.Answered, r.settle(said).Action)
	assert.Equal(t, map[string]string{"A": "A done"}, r.replies())
	assert.Contains(t, r.Unreported(), "a hook of the client could not note the end of its turn")

	r = newRig(t, "A", "B")
	c, p = r.round("")
	c.start()
	c.submit(p)
	assert.Equal(t, "B", c.stop("A done", false))
	assert.NotEqual(t, recovery.Answered, r.settle(said).Action)
	assert.Equal(t, map[string]string{"A": "A done"}, r.replies())
}

func TestKilledClient(t *testing.T) {
	for name, c := range map[string]struct {
		does func(c *standIn, prompt string)
		exit Exit
		want []int
	}{
		"printed nothing":             {func(*standIn, string) {}, nothing, queued},
		"before its hook, unseen":     {func(*standIn, string) {}, Exit{}, queued},
		"went on without hooks":       {func(*standIn, string) {}, seen, dead},
		"after its start":             {func(c *standIn, _ string) { c.start() }, Exit{Known: true, Began: true}, queued},
		"after its start, unseen":     {func(c *standIn, _ string) { c.start() }, Exit{}, queued},
		"asked, and no hook bound it": {func(c *standIn, _ string) { c.start() }, seen, dead},
		"no hook bound it, unseen": {func(c *standIn, p string) {
			c.start()
			c.wrotePrompt(p)
		}, Exit{}, dead},
		"bound": {func(c *standIn, p string) {
			c.start()
			c.submit(p)
		}, Exit{}, dead},
		"no Stop, shown to be over": {func(c *standIn, p string) {
			c.start()
			c.submit(p)
			c.wrotePrompt(p)
			c.wroteReply("done")
			c.wroteSummary()
		}, Exit{}, answered},
		"neither bound nor stopped, shown to be over": {func(c *standIn, p string) {
			c.start()
			c.wrotePrompt(p)
			c.wroteReply("done")
			c.wroteSummary()
		}, seen, answered},
		"in the middle of its turn": {func(c *standIn, p string) {
			c.start()
			c.submit(p)
			c.wrotePrompt(p)
			c.wroteReply("well")
		}, seen, dead},
		"binding missed, shown": {func(c *standIn, p string) {
			c.start()
			c.wrotePrompt(p)
			c.stop("done", false)
		}, seen, answered},
		"another prompt": {func(c *standIn, _ string) {
			c.start()
			c.submit("something else")
			c.wrotePrompt("something else")
			c.stop("done", false)
		}, seen, dead},
		"a command of the client's": {func(c *standIn, _ string) { c.start() }, Exit{Known: true, Began: true, Succeeded: true}, dead},
		"an error that a hook told of": {func(c *standIn, p string) {
			c.start()
			c.submit(p)
			c.fire("StopFailure", map[string]any{"error": "rate_limit", "last_assistant_message": "slow down"})
		}, Exit{Known: true, Began: true}, queued},
		"an error that no hook told of": {func(c *standIn, p string) {
			c.start()
			c.submit(p)
		}, Exit{Known: true, Began: true, Failure: &inbox.Failure{Error: "rate_limit", Message: "slow down"}}, queued},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, "A")
			client, p := r.round("")
			c.does(client, p)
			r.Queue = r.open() // whoever settles may be another process
			r.settle(c.exit)
			assert.Equal(t, c.want, r.fates())
			if c.exit.Failure != nil {
				n, err := r.Waiting(t.Context())
				require.NoError(t, err)
				assert.True(t, n.Waits && n.Any())
				_, ok, err := r.First(t.Context())
				require.NoError(t, err)
				assert.False(t, ok, "delivery is held")
			}
		})
	}
}

// The host owns its entry before the client is started: nobody else settles that, and
// another session's Stop says whose it is.
func TestTheHostOwnsItsPrompt(t *testing.T) {
	r := newRig(t, "A", "B")
	r.round("")
	n, err := r.Waiting(t.Context())
	require.NoError(t, err)
	require.NotNil(t, n.Owner, "what waits is not for a host that comes now")
	assert.Equal(t, os.Getpid(), n.Owner.PID)

	report, err := recovery.Run(t.Context(), recovery.Asker{Box: r.box, Client: inbox.ProcessOf(os.Getppid())}, recovery.Sight{})
	require.NoError(t, err)
	assert.Equal(t, recovery.Owned, report.Action)

	t.Setenv("CLAUDE_PID", strconv.Itoa(os.Getppid()))
	other := &standIn{rig: r, session: "other", prompt: "p9", hook: []string{"--inbox", r.Path(), "--on-orphan", "retry"}}
	assert.Empty(t, other.stop("well", false))
	assert.Contains(t, other.heard, "which lives: it is left to that one")
	assert.Equal(t, []int{0, 1, 1, 0}, r.fates())
}

// Another session that lives has an entry whose text is in a file: whoever settles leaves
// both.
func TestAnotherOwnersTextStays(t *testing.T) {
	r := newRig(t, "A")
	owner := inbox.ProcessOf(os.Getppid())
	spill := recovery.SpillPath(r.box, "0123456789ab")
	require.NoError(t, os.WriteFile(spill, []byte("A"), 0o600))
	tx, err := r.box.Begin(t.Context())
	require.NoError(t, err)
	e, err := tx.Next(inbox.Mark{})
	require.NoError(t, err)
	_, err = tx.Deliver(e, inbox.Recipient{SessionID: "other", Evidence: recovery.Evidence{
		Process: owner, Wake: recovery.Wake{Woken: true, Bound: true, Spill: spill},
	}.Encode()})
	require.NoError(t, err)
	require.NoError(t, errors.Join(tx.Commit(), tx.Close()))
	assert.Equal(t, recovery.Owned, r.settle(Exit{}).Action)
	assert.FileExists(t, spill)
}
