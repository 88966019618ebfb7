package inbox_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/inbox"
)

func wait(t testing.TB, box *inbox.Inbox, name, session string) {
	t.Helper()
	in(t, box, func(tx *inbox.Tx) { require.NoError(t, tx.In(session).Wait(name)) })
}

// waiter returns the waiter that a transaction and a view report.
func waiter(t testing.TB, box *inbox.Inbox) *inbox.Waiter {
	t.Helper()
	tx, err := box.Begin(t.Context())
	require.NoError(t, err)
	w, err := tx.Waiter()
	require.NoError(t, err)
	require.NoError(t, tx.Close())
	seen, err := viewOf(t, box).Waiter()
	require.NoError(t, err)
	assert.Equal(t, w, seen)
	return w
}

func TestWaiter(t *testing.T) {
	box := newBox(t, oldContent)
	assert.Nil(t, waiter(t, box))
	wait(t, box, "first", "s\n<é>")
	want := inbox.Waiter{
		Name: "first", SessionID: "s\n<é>", Since: noon,
		Process: inbox.ProcessOf(os.Getpid()),
	}
	assert.Equal(t, &want, waiter(t, open(t, box.Path())), "for everybody")

	wait(t, box, "second", "")
	want.Name, want.SessionID = "second", ""
	assert.Equal(t, &want, waiter(t, box), "whoever comes later takes the place")
	assert.Empty(t, events(t, box), "it is nothing that happens to an entry")
}

func TestStopWaiting(t *testing.T) {
	box := newBox(t, oldContent)
	tx := begin(t, box)
	tx.StopWaiting()
	assert.False(t, tx.Dirty(), "nobody waits")
	require.NoError(t, tx.Close())
	wait(t, box, "first", "s")
	in(t, box, func(tx *inbox.Tx) { tx.StopWaiting() })
	assert.Nil(t, waiter(t, box))
}

// A transaction that delivers ends the waiting in the same commit, or in none.
func TestWaitingEndsWithTheDelivery(t *testing.T) {
	box := newBox(t, oldContent)
	wait(t, box, "first", "s")
	take := func(tx *inbox.Tx) {
		e, err := tx.Next(inbox.Mark{})
		require.NoError(t, err)
		_, err = tx.Deliver(e, inbox.Recipient{SessionID: "s"})
		require.NoError(t, err)
		tx.StopWaiting()
	}
	tx := begin(t, box)
	take(tx)
	require.NoError(t, tx.Close())
	assert.NotNil(t, waiter(t, box), "it was not committed")
	in(t, box, take)
	assert.Nil(t, waiter(t, box))
	assert.Equal(t, "one", begin(t, box).InFlight().Text())
}

// The waiter stays, whatever happens to the files and to entries.
func TestWaiterStays(t *testing.T) {
	reboot(t, "one")
	box := newBox(t, oldContent)
	deliver(t, box)
	wait(t, box, "first", "s")
	for _, change := range []func(){
		func() { acknowledge(t, box, "done") },
		func() { pause(t, box, "", nil) },
		func() { resume(t, box) },
		func() { in(t, box, func(tx *inbox.Tx) { require.NoError(t, tx.In("s").End()) }) },
		func() { forget(t, box) },
		func() { rewrite(t, box.Path(), "new\n") },
		func() { reboot(t, "two") },
	} {
		change()
		w := waiter(t, box)
		require.NotNil(t, w)
		assert.Equal(t, "first", w.Name)
		assert.Equal(t, "one", w.Boot, "of the boot that it began in")
		in(t, box, func(*inbox.Tx) {})
	}
}
