package inbox_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/inbox"
)

func pause(t testing.TB, box *inbox.Inbox, reason string, until *time.Time) (p inbox.Pause) {
	t.Helper()
	in(t, box, func(tx *inbox.Tx) {
		var err error
		p, err = tx.Holds().Pause(reason, until)
		require.NoError(t, err)
	})
	return p
}

func resume(t testing.TB, box *inbox.Inbox) {
	t.Helper()
	in(t, box, func(tx *inbox.Tx) { require.NoError(t, tx.Holds().Resume()) })
}

// paused returns the pause that a transaction and a view find.
func paused(t testing.TB, box *inbox.Inbox) *inbox.Pause {
	t.Helper()
	tx := begin(t, box)
	p, err := tx.Holds().Paused()
	require.NoError(t, err)
	require.NoError(t, tx.Close())
	v, err := viewOf(t, box).Holds().Paused()
	require.NoError(t, err)
	assert.Equal(t, p, v)
	return p
}

func TestPause(t *testing.T) {
	now := clockOf(t, newBox(t, oldContent))
	box := now.box
	assert.Nil(t, paused(t, box))
	resume(t, box)
	assert.Empty(t, events(t, box), "there was no pause to end")

	assert.Equal(t, inbox.Pause{At: noon, Reason: "maintenance"}, pause(t, box, "maintenance", nil))
	assert.Equal(t, &inbox.Pause{At: noon, Reason: "maintenance"}, paused(t, open(t, box.Path())), "for everybody")
	now.set(noon.Add(1000 * time.Hour))
	assert.NotNil(t, paused(t, box), "without end")
	resume(t, box)
	assert.Nil(t, paused(t, box))
	resume(t, box)
	assert.Len(t, events(t, box), 2)
}

func TestPauseEndsByItself(t *testing.T) {
	now := clockOf(t, newBox(t, oldContent))
	until := noon.Add(time.Hour)
	pause(t, now.box, "", &until)
	for offset, holds := range map[time.Duration]bool{0: true, time.Hour - 1: true, time.Hour: false, 9 * time.Hour: false, -9 * time.Hour: true} {
		now.set(noon.Add(offset))
		assert.Equal(t, holds, paused(t, now.box) != nil, offset)
	}
}

// Pausing again changes the reason and the end, but not the start.
func TestPauseAgain(t *testing.T) {
	now := clockOf(t, newBox(t, oldContent))
	until := noon.Add(time.Hour)
	pause(t, now.box, "first", nil)
	now.set(noon.Add(time.Minute))
	assert.Equal(t, inbox.Pause{At: noon, Reason: "second", Until: &until}, pause(t, now.box, "second", &until))
	now.set(noon.Add(2 * time.Minute))
	assert.Equal(t, inbox.Pause{At: noon}, pause(t, now.box, "", nil))
	pause(t, now.box, "", &until)
	now.set(until)
	assert.Equal(t, inbox.Pause{At: until}, pause(t, now.box, "", nil), "the one before is over")
	assert.Len(t, events(t, now.box), 5)
}

func TestPauseThatIsOverAlready(t *testing.T) {
	box := newBox(t, oldContent)
	past := noon.Add(-time.Hour)
	pause(t, box, "", &past)
	assert.Nil(t, paused(t, box))
}

// A pause outlives all changes to the files, and the entry in flight continues.
func TestPauseStays(t *testing.T) {
	reboot(t, "one")
	box := newBox(t, oldContent)
	deliver(t, box)
	pause(t, box, "é \"why\" \n<&>", nil)
	acknowledge(t, box, "done")
	for _, change := range []func(){
		func() { forget(t, box) },
		func() { reboot(t, "two") },
		func() { rewrite(t, box.Path(), "new\n") },
		func() { write(t, beside(box, ".inbox-offset"), "0") },
	} {
		change()
		require.Equal(t, &inbox.Pause{At: noon, Reason: "é \"why\" \n<&>"}, paused(t, box))
		in(t, box, func(*inbox.Tx) {})
	}
	assert.Len(t, results(t, box), 1)
}
