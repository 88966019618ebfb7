package worker_test

import (
	"encoding/json"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/fleet/message"
	"heartbeat/internal/testing/fleet"
)

func TestOneOfTwoThatStartAtOnceHasTheName(t *testing.T) {
	t.Parallel()
	w := newWorld(t, time.Hour)
	inbox := func() string { return filepath.Join(t.TempDir(), "inbox.jsonl") }
	a := w.startAt(w.server.URL(), inbox(), "one", nil, "--no-session")
	b := w.startAt(w.server.URL(), inbox(), "one", nil, "--no-session")
	select {
	case <-a.Done:
		a, b = b, a
	case <-b.Done:
	case <-time.After(5 * time.Minute):
		require.Fail(t, "both have the name", a.said()+b.said())
	}
	assert.Equal(t, 1, b.ended())
	assert.Contains(t, b.said(), "give this one another name")
	w.send("a")
	w.eventually("the other one works", func() bool { return len(a.held()) == 1 }, a)
}

// Whoever starts an agent again and again, since its name is that of one that was killed
// elsewhere, must not keep that one alive by asking.
func TestANameIsFreeThoughItIsAskedForAllTheTime(t *testing.T) {
	t.Parallel()
	w := newWorld(t, time.Hour)
	gone := message.Presence{Agent: "one", Host: "elsewhere", Ledger: "another", EverySeconds: 0.5}
	value, err := json.Marshal(gone)
	require.NoError(t, err)
	_, err = w.l.Agents.Put(fleet.Context(t), message.AgentKey("one"), value)
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "inbox.jsonl")
	w.eventually("the name is free", func() bool {
		a := w.startAt(w.server.URL(), path, "one", nil, "--no-session")
		w.eventually("it works, or not", func() bool {
			select {
			case <-a.Done:
				return true
			default:
				p := w.presence("one")
				return p != nil && p.PID == a.Process.Pid
			}
		}, a)
		select {
		case <-a.Done:
			return false
		default:
			return true
		}
	})
}
