package deadletter

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"heartbeat/internal/hosting/guild"
	"heartbeat/internal/testing/crash"
	testguild "heartbeat/internal/testing/guild"
)

// end is how a host ends: it keeps its record and delivers it. Its arguments are the
// guild's URL and a directory, whose file "id" names the session.
func end() int {
	url, dir := os.Args[1], os.Args[2]
	if err := endIn(url, dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func endIn(url, dir string) error {
	id, err := os.ReadFile(filepath.Join(dir, "id"))
	if err != nil {
		return err
	}
	box := Beside(filepath.Join(dir, "nexus.db"))
	if err := box.PutRecord(recordOf(string(id))); err != nil {
		return err
	}
	crash.Promise("kept")
	client, err := guild.New(guild.Options{URL: url, SessionID: string(id)})
	if err != nil {
		return err
	}
	_, err = box.Deliver(context.Background(), client, Record, string(id))
	return err
}

// drainChild drains the letters beside a database.
func drainChild() int {
	outcomes, err := Drain(context.Background(), Options{DB: filepath.Join(os.Args[2], "nexus.db"), GuildURL: at(os.Args[1])})
	if err == nil && len(outcomes) != 2 {
		err = fmt.Errorf("%v", outcomes)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// sessions gives each try of a scenario a session of its own.
type sessions struct{ n atomic.Int64 }

func (s *sessions) next(t testing.TB, dir string) string {
	id := "ses-" + strconv.FormatInt(s.n.Add(1), 10)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "id"), []byte(id), 0o600))
	return id
}

func in(t *testing.T, dir string) string {
	id, err := os.ReadFile(filepath.Join(dir, "id"))
	require.NoError(t, err)
	return string(id)
}

func nothingLeft(t *testing.T, dir string) {
	names, err := filepath.Glob(filepath.Join(dir, "dlq", "*.json*"))
	require.NoError(t, err)
	assert.Empty(t, names)
	names, err = filepath.Glob(filepath.Join(dir, "dlq", "running", "*"))
	require.NoError(t, err)
	assert.Empty(t, names)
}

// TestAHostThatEnds is killed at each call that changes a file, runs out of disk, and
// loses power. What it kept arrives by a drain, what it did not keep by another end, and
// each report is applied once.
func TestAHostThatEnds(t *testing.T) {
	g, url := newGuild(t, testguild.Options{})
	var ids sessions
	s := crash.Scenario{
		Setup: func(t testing.TB, dir string) { ids.next(t, dir) },
		Run:   func(dir string) crash.Command { return crash.Command{Name: "end", Args: []string{url, dir}} },
	}
	check := func(t *testing.T, c crash.Crash) {
		id := in(t, c.Dir)
		_, err := Drain(t.Context(), Options{DB: filepath.Join(c.Dir, "nexus.db"), GuildURL: at(url)})
		require.NoError(t, err)
		if len(c.Promised) > 0 {
			held, _ := g.Session(id)
			assert.Equal(t, 1, held.Record.Applied, "it was kept")
		}
		require.NoError(t, endIn(url, c.Dir))
		held, _ := g.Session(id)
		assert.Equal(t, 1, held.Record.Applied)
		assert.Equal(t, 1, held.Messages)
		nothingLeft(t, c.Dir)
	}
	t.Run("kill", func(t *testing.T) { s.EveryKill(t, check) })
	t.Run("full disk", func(t *testing.T) { s.EveryFail(t, unix.ENOSPC, check) })
	t.Run("power loss", func(t *testing.T) { s.EveryPowerLoss(t, 1, 5, check) })
}

// TestADrainThatIsKilled at each call that changes a file loses nothing.
func TestADrainThatIsKilled(t *testing.T) {
	g, url := newGuild(t, testguild.Options{})
	var ids sessions
	s := crash.Scenario{
		Setup: func(t testing.TB, dir string) {
			id := ids.next(t, dir)
			box := Beside(filepath.Join(dir, "nexus.db"))
			require.NoError(t, box.PutRunning(runningOf(id)))
			require.NoError(t, box.PutRecord(recordOf(id)))
		},
		Run: func(dir string) crash.Command { return crash.Command{Name: "drain", Args: []string{url, dir}} },
	}
	check := func(t *testing.T, c crash.Crash) {
		id := in(t, c.Dir)
		_, err := Drain(t.Context(), Options{DB: filepath.Join(c.Dir, "nexus.db"), GuildURL: at(url)})
		require.NoError(t, err)
		held, _ := g.Session(id)
		assert.Equal(t, 1, held.Running.Applied)
		assert.Equal(t, 1, held.Record.Applied)
		nothingLeft(t, c.Dir)
	}
	t.Run("kill", func(t *testing.T) { s.EveryKill(t, check) })
	t.Run("power loss", func(t *testing.T) { s.EveryPowerLoss(t, 1, 5, check) })
}
