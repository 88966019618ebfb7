package metrics_test

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/inbox"
	"heartbeat/internal/machine"
)

func commit(t testing.TB, box *inbox.Inbox, change func(*inbox.Tx) error) {
	t.Helper()
	tx, err := box.Begin(t.Context())
	require.NoError(t, err)
	require.NoError(t, change(tx))
	require.NoError(t, tx.Commit())
	require.NoError(t, tx.Close())
}

func TestOfABackoff(t *testing.T) {
	now := &at{noon}
	box := newBox(t, now)
	commit(t, box, func(tx *inbox.Tx) error {
		_, err := tx.Holds().BackOff(time.Hour, 3, false, nil)
		return err
	})
	f := gather(t, box, noon)
	assert.EqualValues(t, 1, value(t, f, "heartbeat_backing_off"))
	assert.InDelta(t, noon.Add(time.Hour).Unix(), value(t, f, "heartbeat_backing_off_until_timestamp_seconds"), 60)
	assert.EqualValues(t, 3, value(t, f, "heartbeat_failures_in_a_row"))

	commit(t, box, func(tx *inbox.Tx) error {
		_, err := tx.Holds().BackOff(0, 4, false, nil)
		return err
	})
	f = gather(t, box, noon)
	assert.Zero(t, value(t, f, "heartbeat_backing_off"))
	assert.NotContains(t, f, "heartbeat_backing_off_until_timestamp_seconds")
	assert.EqualValues(t, 4, value(t, f, "heartbeat_failures_in_a_row"), "nothing was answered since")
	commit(t, box, func(tx *inbox.Tx) error { return tx.Holds().Resume() })
	assert.Zero(t, value(t, gather(t, box, noon), "heartbeat_failures_in_a_row"))
}

func TestOfAWaiter(t *testing.T) {
	t.Cleanup(func() { machine.TestOnlyBootID = "" })
	box := newBox(t, &at{noon})
	assert.Zero(t, value(t, gather(t, box, noon), "heartbeat_waiter"), "nobody waits")
	commit(t, box, func(tx *inbox.Tx) error { return tx.In("s1").Wait("name") })
	f := gather(t, box, noon)
	if machine.ProcessStart(os.Getpid()) == 0 {
		assert.NotContains(t, f, "heartbeat_waiter")
		return
	}
	assert.EqualValues(t, 1, value(t, f, "heartbeat_waiter"))
	machine.TestOnlyBootID = "another boot"
	assert.Zero(t, value(t, gather(t, box, noon), "heartbeat_waiter"))
}

func TestOfAQuestion(t *testing.T) {
	t.Cleanup(func() { machine.TestOnlyBootID = "" })
	box := newBox(t, &at{noon})
	const name = "heartbeat_waiting_for_person"
	commit(t, box, func(tx *inbox.Tx) error { return tx.In("s1").Ask("permission_prompt", "") })
	assert.EqualValues(t, 1, value(t, gather(t, box, noon), name), "whether it runs is not known")
	commit(t, box, func(tx *inbox.Tx) error { tx.In("s1").StopAsking(); return nil })
	assert.Zero(t, value(t, gather(t, box, noon), name))

	commit(t, box, func(tx *inbox.Tx) error { return tx.In("s1").Start(os.Getpid(), nil) })
	commit(t, box, func(tx *inbox.Tx) error { return tx.In("s1").Ask("permission_prompt", "") })
	assert.EqualValues(t, 1, value(t, gather(t, box, noon), name))
	machine.TestOnlyBootID = "another boot"
	assert.Zero(t, value(t, gather(t, box, noon), name), "it is gone")
}
