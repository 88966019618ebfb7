package session_test

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/hosting/folder"
	"heartbeat/internal/hosting/session"
	"heartbeat/internal/machine"
	"heartbeat/internal/testing/crash"
	"heartbeat/internal/testing/guild"
	"heartbeat/internal/testing/long"
)

// chaosVariable is how many sessions [TestChaos] hosts, chaosSeed the first one's seed.
const (
	chaosVariable = "HEARTBEAT_TEST_CHAOS"
	chaosSeed     = "HEARTBEAT_TEST_CHAOS_SEED"
)

// Whoever is killed in whatever order, the guild gets each end once.
func TestChaos(t *testing.T) {
	n, seed := long.Rounds(4, 40), uint64(time.Now().UnixNano())
	if text := os.Getenv(chaosVariable); text != "" {
		_, err := strconv.Atoi(text)
		require.NoError(t, err)
		n, _ = strconv.Atoi(text)
	}
	if text := os.Getenv(chaosSeed); text != "" {
		given, err := strconv.ParseUint(text, 10, 64)
		require.NoError(t, err)
		n, seed = 1, given
	}
	for i := range uint64(n) {
		t.Run(strconv.FormatUint(seed+i, 10), func(t *testing.T) {
			t.Parallel()
			chaos(t, rand.New(rand.NewPCG(seed+i, 1)))
		})
	}
}

func pick[T any](r *rand.Rand, all ...T) T { return all[r.IntN(len(all))] }

func chaos(t *testing.T, random *rand.Rand) {
	r := newRig(t, pick(random, "hello", "hello", "die", "exit:3", "child", "result"))
	g, err := guild.Launch(guild.Options{State: r.path("guild"), Cancelled: pick(random, true, false)})
	require.NoError(t, err)
	t.Cleanup(g.Kill)
	require.NoError(t, g.Expect("ses-1"))
	r.Config.GuildToolURL = g.URL()
	for range random.IntN(3) {
		require.NoError(t, g.Break(guild.Fault{
			On: pick(random, "running", "record", ""), Step: pick(random, guild.Steps...), Skip: random.IntN(2),
			Do: pick(random, guild.Die, guild.Reset), Times: 1 + random.IntN(2),
		}))
	}
	rest := time.Duration(random.IntN(1000)) * time.Millisecond
	over, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		keepUp(t, g, rest, over)
	}()
	cmd := r.command()
	switch random.IntN(3) {
	case 0:
		cmd.Env = append(cmd.Env, crash.EnvKillAt+"="+strconv.Itoa(1+random.IntN(185))+pick(random, "", ",torn"))
	case 1:
		cmd.Env = append(cmd.Env, killVariable+"="+pick(random, "queued", "started", "message", "result", "ended", "decided", "kept", "reported"))
	}
	_ = cmd.Run() // it may be killed
	begun := func() bool { _, err := r.folder().Read(); return err == nil }
	r.until("nobody works on the session", func() bool {
		return r.folder().Holder() == 0 && (!begun() || r.state().Host == nil || r.state().TerminalReport.State == "")
	})
	r.until("the guild has been told", func() bool {
		_, _ = session.Drain(t.Context(), session.DrainOptions{DB: r.Config.DBPath})
		return !begun() || r.state().Host == nil && r.state().TerminalReport.State == "delivered"
	})
	r.alone()
	close(over)
	<-stopped
	all, err := g.Sessions()
	require.NoError(t, err)
	if begun() {
		assert.Equal(t, 1, all["ses-1"].Record.Applied)
		r.isClean()
	} else {
		assert.Zero(t, all["ses-1"].Record.Applied)
	}
}

// keepUp starts a guild again that has died, after a rest, until the end.
func keepUp(t *testing.T, g *guild.Program, rest time.Duration, over <-chan struct{}) {
	for last := false; !last; {
		select {
		case <-over:
			last = true
		case <-time.After(20 * time.Millisecond):
		}
		if _, err := g.Sessions(); err == nil {
			continue
		}
		g.Kill()
		time.Sleep(rest)
		assert.NoError(t, g.Start())
	}
}

// alone waits until nobody works on the session: its host, its guardian and whoever that
// became, its client. Their environment names the rig's home, or their command line the
// session's folder; while a process becomes another program it has neither.
func (r *rig) alone() {
	r.t.Helper()
	looks := 0
	names := func(pid int, file, text string) bool {
		all, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), file))
		return bytes.Contains(all, []byte(text))
	}
	r.until("nobody works on the session", func() bool {
		looks++
		for _, p := range machine.List() {
			if names(p.PID, "environ", "HOME="+r.path("home")) || names(p.PID, "cmdline", folder.Root(r.Config.DBPath)+"/") {
				looks = 0
			}
		}
		return looks >= 3
	})
}
