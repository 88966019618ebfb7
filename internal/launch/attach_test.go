package launch_test

import (
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"heartbeat/internal/testing/long"
	"heartbeat/internal/testing/script"
	"heartbeat/internal/testing/seat"
)

// left is what a terminal gets last from whoever was attached.
const left = "\x1b[?25h\x1b[?1049l"

// unattended is a launcher where nobody is at a terminal.
type unattended struct {
	t   *testing.T
	dir string
	cmd *exec.Cmd
}

// works starts one on an inbox with these entries.
func works(t *testing.T, entries []string, flags ...string) *unattended {
	t.Helper()
	u := &unattended{t: t, dir: t.TempDir()}
	require.NoError(t, os.WriteFile(filepath.Join(u.dir, "inbox.jsonl"), []byte(strings.Join(entries, "\n")+"\n"), 0o600))
	u.cmd = exec.Command("heartbeat-launch", append(append([]string{"--inbox", "inbox.jsonl"}, flags...), "--", "claude", "begin")...)
	u.cmd.Dir = u.dir
	u.cmd.Env = append(os.Environ(), "TMPDIR="+t.TempDir(), "XDG_RUNTIME_DIR=") // one that is killed leaves its settings
	log, err := os.Create(filepath.Join(u.dir, "log"))
	require.NoError(t, err)
	u.cmd.Stdout, u.cmd.Stderr = log, log
	require.NoError(t, u.cmd.Start())
	t.Cleanup(func() { _ = u.cmd.Process.Kill(); _ = u.cmd.Wait(); _ = log.Close() }) // it has ended, unless the test failed
	return u
}

func (u *unattended) text(name string) string {
	if !filepath.IsAbs(name) {
		name = filepath.Join(u.dir, name)
	}
	text, _ := os.ReadFile(name) // it may come yet
	return string(text)
}

func (u *unattended) writes(name, text string) {
	u.t.Helper()
	for limit := time.Now().Add(script.Patience); !strings.Contains(u.text(name), text); time.Sleep(2 * time.Millisecond) {
		require.True(u.t, time.Now().Before(limit), "no %q in %s: %s", text, name, u.text("log"))
	}
}

// sits attaches a terminal of 30 rows and 90 columns.
func (u *unattended) sits(flags ...string) *seat.Seat {
	u.t.Helper()
	s := seat.New(u.t, 30, 90, append([]string{"heartbeat", "attach", "--inbox", filepath.Join(u.dir, "inbox.jsonl")}, flags...)...)
	s.Cmd.Dir = u.t.TempDir()
	s.Start()
	return s
}

func (u *unattended) ends(status int) {
	u.t.Helper()
	_ = u.cmd.Wait() // the status is looked at
	assert.Equal(u.t, status, u.cmd.ProcessState.ExitCode(), u.text("log"))
}

// goes waits for the end of who was attached, which says why.
func (u *unattended) goes(s *seat.Seat, why string) {
	u.t.Helper()
	s.Prints(why)
	s.Leaves(0)
	assert.Contains(u.t, s.Printed, left)
}

// A person sees the session, types into it, and leaves it to itself; the next one goes on.
func TestAttach(t *testing.T) {
	t.Parallel()
	u := works(t, []string{"typed"})
	u.writes("asked", "typed")
	s := u.sits()
	s.Sees("you type", `ctrl-\ leaves the session to itself`)
	assert.True(t, s.IsRaw())
	s.Types("half a ")
	s.Sees("half a")
	s.Types("\x1c")
	u.goes(s, "goes on")
	s = u.sits("--detach-key", "ctrl-x")
	s.Sees("half a", "you type", "ctrl-x leaves")
	s.Types("line\r")
	u.goes(s, ": it is over")
	u.ends(0)
	assert.Contains(t, u.text(".results.jsonl"), `"reply":"half a line`)
	s = u.sits()
	s.Prints("nothing works on ")
	s.Leaves(1)
}

// One types, the others watch, and the next takes over; the session's terminal has the size
// of who types.
func TestSeveralAttach(t *testing.T) {
	t.Parallel()
	u := works(t, []string{"typed"})
	u.writes("asked", "typed")
	first := u.sits()
	first.Sees("you type")
	only, second := u.sits("--watch"), u.sits()
	only.Sees("you watch")
	second.Sees("somebody else types")
	second.Types("not this ")
	only.Types("nor this ")
	first.Types("this ")
	for _, s := range []*seat.Seat{first, second, only} {
		s.Sees("this", "!not this", "!nor this")
	}
	first.Types("\x1c")
	u.goes(first, "goes on")
	second.Sees("you type")
	third := u.sits("--take")
	third.Sees("you type")
	second.Sees("somebody else types")
	third.Types("and that\r")
	for _, s := range []*seat.Seat{second, third, only} {
		u.goes(s, ": it is over")
	}
	u.ends(0)
	assert.Contains(t, u.text(".results.jsonl"), `"reply":"this and that`)
}

// Whoever of the two is killed, the other one goes on, or says so and leaves the terminal as
// it was.
func TestAttachedAndKilled(t *testing.T) {
	t.Parallel()
	u := works(t, []string{"typed"})
	u.writes("asked", "typed")
	s := u.sits()
	s.Sees("you type")
	require.NoError(t, s.Cmd.Process.Kill())
	s.Prints(left)
	assert.Eventually(t, func() bool { return !s.IsRaw() }, script.Patience, 2*time.Millisecond, "its guardian puts the terminal back")
	s = u.sits()
	s.Sees("you type")
	require.NoError(t, s.Cmd.Process.Signal(unix.SIGTERM))
	u.goes(s, "goes on")
	s = u.sits()
	s.Sees("you type")
	require.NoError(t, u.cmd.Process.Kill())
	u.goes(s, "its launcher is gone")
}

// A session that asks waits for somebody who answers it, and says how.
func TestAskedAndAnswered(t *testing.T) {
	t.Parallel()
	told := filepath.Join(t.TempDir(), "told")
	u := works(t, []string{"asks Bash command", "more"}, "--ask-patience", "10m", "--notify", `echo "$HEARTBEAT_TYPE_THIS" >>`+told)
	u.writes("log", "the session waits for somebody who answers it, for 10m0s (--ask-patience): heartbeat attach --inbox ")
	status, err := exec.Command("heartbeat", "status", "--inbox", filepath.Join(u.dir, "inbox.jsonl")).CombinedOutput()
	require.NoError(t, err)
	assert.Contains(t, string(status), "heartbeat attach --inbox "+u.dir)
	u.writes(told, "heartbeat attach --inbox "+u.dir)
	s := u.sits()
	s.Sees("Do you want to proceed?", "you type")
	s.Types("1\r")
	u.goes(s, ": it is over")
	u.ends(0)
	assert.Contains(t, u.text(".results.jsonl"), `"reply":"answered 1`)
	assert.Contains(t, u.text(".results.jsonl"), `"reply":"did more"`)
}

// Without patience it is ended at once, but not while somebody is attached, who may answer.
func TestAskedAndLeft(t *testing.T) {
	t.Parallel()
	u := works(t, []string{"typed", "asks Bash command"})
	u.writes("asked", "typed")
	s := u.sits()
	s.Types("go on\r")
	s.Sees("Do you want to proceed?")
	u.writes(".events.jsonl", "may I?")
	s.Types("\x1c")
	u.goes(s, "goes on")
	u.ends(3)
	assert.Contains(t, u.text("log"), "it waits for a person, and nobody is there: ")
}

// What a session starts cannot type into it.
func TestASessionCannotAttachToItself(t *testing.T) {
	t.Parallel()
	u := works(t, []string{"within attach --inbox inbox.jsonl --watch"})
	u.ends(0)
	assert.Contains(t, u.text(".results.jsonl"), "a process of the session may not attach to it")
}

// However those before have left, the next one types on, and every key is in the answer once.
func TestAttachedAgainAndAgain(t *testing.T) {
	t.Parallel()
	u := works(t, []string{"typed"})
	u.writes("asked", "typed")
	r := rand.New(rand.NewPCG(28, 28))
	typed := ""
	for i := range long.Rounds(8, 40) {
		var watch *seat.Seat
		if r.IntN(2) == 0 {
			watch = u.sits("--watch")
			watch.Sees("you watch", typed)
		}
		s := u.sits()
		s.Sees("you type", typed)
		if r.IntN(2) == 0 {
			s.Resizes(5+r.IntN(40), 60+r.IntN(100))
			s.Sees("you type")
		}
		key := string(rune('A' + i%26)) // the line below the session has none of them
		typed += key
		s.Types(key)
		s.Sees(typed)
		switch r.IntN(3) {
		case 0:
			require.NoError(t, s.Cmd.Process.Kill())
			_ = s.Cmd.Wait() // it was killed
		case 1:
			s.Types("\x1c")
			u.goes(s, "goes on")
		case 2:
			require.NoError(t, s.Cmd.Process.Signal(unix.SIGHUP))
			u.goes(s, "goes on")
		}
		if watch != nil {
			require.NoError(t, watch.Cmd.Process.Kill())
			_ = watch.Cmd.Wait() // it was killed
		}
	}
	s := u.sits()
	s.Sees("you type", typed)
	s.Types("\r")
	u.goes(s, ": it is over")
	u.ends(0)
	assert.Contains(t, u.text(".results.jsonl"), `"reply":"`+typed+`\n"`)
}
