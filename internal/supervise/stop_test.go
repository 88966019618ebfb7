package supervise

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/inbox"
	"heartbeat/internal/command/history"
	"heartbeat/internal/disk"
	"heartbeat/internal/machine/signals"
	"heartbeat/internal/supervise/client"
	"heartbeat/internal/supervise/terminal"
)

// The event of a session's start may be read once the launcher was told to end.
func TestTheSignOfAnEndStays(t *testing.T) {
	r, box := newRun(t, Drain)
	lock, err := disk.AcquireLock(t.Context(), filepath.Join(box.Dir(), ".launch-lock"), 0)
	require.NoError(t, err)
	defer func() { require.NoError(t, lock.Release()) }()
	r.sign.setLock(lock)
	r.Terminal.Signals = signals.Catch()
	defer r.Terminal.Signals.Stop()
	r.service = &service{}
	begun := r.creditTo(newSession(client.Of("", []string{"claude"}), terminal.DefaultSize))
	begun(history.Event{Event: string(inbox.EventStarted), SessionID: "one"})
	assert.Contains(t, r.sign.text(), "its session is one")
	r.stop.why.Store(&ending{reason: Stopped})
	r.sign.say("it ends")
	begun(history.Event{Event: string(inbox.EventStarted), SessionID: "two"})
	assert.Equal(t, "it ends", r.sign.text())
}
