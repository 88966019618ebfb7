package deadletter

import (
	"context"
	"fmt"
	"math/rand/v2"
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
	"heartbeat/internal/testing/long"
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
	client, err := guild.New(guild.Options{URL: url, SessionID: string(id), Once: true})
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

// TestNoRecordIsLost kills guild and host at random steps of a session's end, resets
// connections and has the guild fail. Somebody finishes and drains afterwards. Each
// record is applied once.
func TestNoRecordIsLost(t *testing.T) {
	p, err := testguild.Launch(testguild.Options{State: filepath.Join(t.TempDir(), "state")})
	require.NoError(t, err)
	t.Cleanup(func() { p.Kill() })
	rng := rand.New(rand.NewPCG(1, 2))
	faults := []testguild.Fault{
		{Do: testguild.Die}, {Do: testguild.Reset}, {Do: testguild.Answer, Status: 503}, {Do: testguild.Slow, Delay: 1},
	}
	var ids sessions
	killed, left := 0, 0
	for range long.Rounds(25, 250) {
		dir := t.TempDir()
		id := ids.next(t, dir)
		fault := faults[rng.IntN(len(faults))]
		fault.On, fault.Step = "record", testguild.Steps[rng.IntN(len(testguild.Steps))]
		require.NoError(t, p.Break(fault))
		child := crash.Command{Name: "end", Args: []string{p.URL(), dir}}
		if rng.IntN(2) == 0 {
			child.Env = []string{crash.EnvKillAt + "=" + strconv.Itoa(1+rng.IntN(14))}
		}
		if child.Run(t).Signal != 0 {
			killed++
		}
		if _, err := p.Sessions(); err != nil {
			p.Kill()
			require.NoError(t, p.Start())
		}
		require.NoError(t, p.Mend())

		letters, _, err := Beside(filepath.Join(dir, "nexus.db")).List()
		require.NoError(t, err)
		if len(letters) > 0 {
			left++
		}
		held, err := p.Sessions()
		require.NoError(t, err)
		if len(letters) == 0 && held[id].Record.Applied == 0 {
			require.NoError(t, endIn(p.URL(), dir), "who finishes decides, keeps and delivers")
		}
		_, err = Drain(t.Context(), Options{DB: filepath.Join(dir, "nexus.db"), GuildURL: at(p.URL())})
		require.NoError(t, err)
		held, err = p.Sessions()
		require.NoError(t, err)
		assert.Equal(t, 1, held[id].Record.Applied, "%s: %+v %v", id, fault, child.Env)
		nothingLeft(t, dir)
	}
	t.Logf("%d hosts killed, %d letters left for a drain", killed, left)
	assert.NotZero(t, killed)
	assert.NotZero(t, left)
}
