package inbox_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/inbox"
)

func ask(t testing.TB, box *inbox.Inbox, id, text string) {
	t.Helper()
	in(t, box, func(tx *inbox.Tx) { require.NoError(t, tx.In(id).Ask("permission_prompt", text)) })
}

func TestSessionAsks(t *testing.T) {
	now := clockOf(t, newBox(t, oldContent))
	ask(t, now.box, "s", "may I <é>?")
	assert.Equal(t, &inbox.Question{At: noon, Kind: "permission_prompt", Text: "may I <é>?"}, session(t, now.box, "s").Asks)
	assert.Nil(t, session(t, now.box, "other").Asks)
	assert.Equal(t, []inbox.Event{{At: noon, Event: inbox.EventAsked, Session: "s", Reason: "permission_prompt: may I <é>?"}}, events(t, now.box))

	later := noon.Add(1)
	now.set(later)
	ask(t, now.box, "s", "")
	assert.Equal(t, &inbox.Question{At: later, Kind: "permission_prompt"}, session(t, now.box, "s").Asks, "the latest")
	assert.Equal(t, "permission_prompt", events(t, now.box)[1].Reason)
}

// A session that continues in any way waits for nobody.
func TestQuestionEnds(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		do   func(tx *inbox.Tx) error
		ends bool
	}{
		"goes on":         {func(tx *inbox.Tx) error { tx.In("s").StopAsking(); return nil }, true},
		"was prompted":    {func(tx *inbox.Tx) error { return tx.In("s").Prompt("p") }, true},
		"failed":          {func(tx *inbox.Tx) error { return tx.In("s").Fail("overloaded", "") }, true},
		"ended":           {func(tx *inbox.Tx) error { return tx.In("s").End() }, true},
		"started again":   {func(tx *inbox.Tx) error { return tx.In("s").Start(1, nil) }, true},
		"another goes on": {func(tx *inbox.Tx) error { tx.In("other").StopAsking(); return nil }, false},
		"another prompt":  {func(tx *inbox.Tx) error { return tx.In("other").Prompt("p") }, false},
	} {
		t.Run(name, func(t *testing.T) {
			box := newBox(t, oldContent)
			ask(t, box, "s", "may I?")
			in(t, box, func(tx *inbox.Tx) { require.NoError(t, c.do(tx)) })
			assert.Equal(t, c.ends, session(t, box, "s").Asks == nil)
		})
	}
}

// In nearly every turn nobody had asked: then there is nothing to commit.
func TestGoOnChangesNothing(t *testing.T) {
	box := newBox(t, oldContent)
	tx := begin(t, box)
	tx.In("s").StopAsking()
	assert.False(t, tx.Dirty(), "it is not known")
	require.NoError(t, tx.Close())
	in(t, box, func(tx *inbox.Tx) { require.NoError(t, tx.In("s").Start(1, nil)) })
	ask(t, box, "other", "may I?")
	tx = begin(t, box)
	tx.In("s").StopAsking()
	tx.In("unknown").StopAsking()
	assert.False(t, tx.Dirty(), "another one asks")
	require.NoError(t, tx.Close())
	in(t, box, func(tx *inbox.Tx) { tx.In("other").StopAsking() })
	assert.Nil(t, session(t, box, "other").Asks)
}

func TestSessionIsPrompted(t *testing.T) {
	now := clockOf(t, newBox(t, oldContent))
	in(t, now.box, func(tx *inbox.Tx) { require.NoError(t, tx.In("s").Start(0, nil)) })
	assert.Nil(t, session(t, now.box, "s").PromptedAt)
	at := noon.Add(1)
	now.set(at)
	in(t, now.box, func(tx *inbox.Tx) { require.NoError(t, tx.In("s").Prompt("p")) })
	started := noon
	s := session(t, now.box, "s")
	assert.Equal(t, &at, s.PromptedAt)
	assert.Equal(t, &started, s.StartedAt)
	in(t, now.box, func(tx *inbox.Tx) { require.NoError(t, tx.In("s").End()) })
	assert.Equal(t, &at, session(t, now.box, "s").PromptedAt)
	assert.Len(t, events(t, now.box), 2, "a prompt is none")
}
