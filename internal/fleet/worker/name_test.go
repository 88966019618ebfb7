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

// A copy of a machine has the names of its host, its inbox and its lock.
func TestACopyOfAMachineWaitsWhileTheOtherWorks(t *testing.T) {
	t.Parallel()
	w := newWorld(t, time.Hour)
	a := w.start("one", nil, "--no-session")
	w.eventually("it has its name", func() bool { return w.presence("one") != nil }, a)
	a.kill()
	other := w.presence("one")
	says := func(everySeconds float64) {
		other.Boot, other.EverySeconds = "another", everySeconds
		value, err := json.Marshal(other)
		require.NoError(t, err)
		_, err = w.l.Agents.Put(fleet.Context(t), message.AgentKey("one"), value)
		require.NoError(t, err)
	}
	says(20)
	w.send("a")
	b := a.again(w, "--no-session")
	w.says(b, "is a copy of a machine whose agent one is at work")
	assert.Equal(t, "another", w.presence("one").Boot)
	assert.Empty(t, b.held())
	says(0.001)
	w.eventually("it works once the other is silent", func() bool { return len(b.held()) == 1 }, b)
}

// Whoever was away for an AckWait may find that another agent has its name.
func TestAnAgentWhoseNameWasTakenEnds(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 3*time.Second)
	a := w.start("one", nil, "--no-session")
	w.eventually("it has its name", func() bool { return w.presence("one") != nil }, a)
	other := w.presence("one")
	other.Boot, other.EverySeconds = "another", 3600
	value, err := json.Marshal(other)
	require.NoError(t, err)
	_, err = w.l.Agents.Put(fleet.Context(t), message.AgentKey("one"), value)
	require.NoError(t, err)
	assert.Equal(t, 1, a.ended())
	assert.Contains(t, a.said(), "give this one another name")
	assert.Equal(t, "another", w.presence("one").Boot)
}
