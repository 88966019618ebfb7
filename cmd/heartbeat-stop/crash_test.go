package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"heartbeat/inbox"
	"heartbeat/internal/disktest"
	"heartbeat/internal/host"
)

// A child of these tests runs the command as it is, and promises what its
// outcome tells the world: a printed decision, or an end without an error.
func init() {
	disktest.Dispatch(map[string]func() int{"command": func() int {
		var said bytes.Buffer
		status := run(os.Args[1:], streams{os.Stdin, promisingWriter{os.Stdout}, io.MultiWriter(os.Stderr, &said)})
		if status == exitOK && !strings.Contains(said.String(), "nothing was changed") {
			disktest.Promise("done")
		}
		return status
	}})
}

type promisingWriter struct{ to *os.File }

func (w promisingWriter) Write(b []byte) (int, error) {
	var d struct{ Reason string }
	if json.Unmarshal(b, &d) == nil && d.Reason != "" {
		disktest.Promise("printed " + d.Reason)
	}
	return w.to.Write(b)
}

// inProcess runs the command in this process and returns what it printed.
func inProcess(t testing.TB, args []string, stdin string) string {
	t.Helper()
	in, err := os.CreateTemp(t.TempDir(), "stdin")
	require.NoError(t, err)
	defer func() { require.NoError(t, in.Close()) }()
	_, err = in.WriteString(stdin)
	require.NoError(t, err)
	_, err = in.Seek(0, 0)
	require.NoError(t, err)
	var out, stderr bytes.Buffer
	require.Equal(t, exitOK, run(args, streams{in, &out, &stderr}), stderr.String())
	return out.String()
}

// after is what a whole new session makes of what a crash left.
type after struct {
	delivered   []string // in this session
	results     []inbox.Result
	deadLetters []inbox.DeadLetter
}

func (s situation) nextSession(t testing.TB, dir string) (a after) {
	if s.sent != "" { // whoever sends with an id sends again until it is told of the end
		inProcess(t, []string{"send", "--inbox", s.inbox(dir), "--settle", "0", "--id", "sent", s.sent}, "")
	}
	args := []string{"--inbox", s.inbox(dir), "--settle", "0"}
	if s.policy != "" {
		args = append(args, "--on-orphan", s.policy)
	}
	reply, active := "ready", false
	for {
		out := inProcess(t, args, crashStop("after", active, reply))
		if out == "" {
			break
		}
		var d struct{ Reason string }
		require.NoError(t, json.Unmarshal([]byte(out), &d))
		a.delivered = append(a.delivered, d.Reason)
		require.Less(t, len(a.delivered), 20, "the session does not end")
		reply, active = "reply to "+d.Reason, true
	}
	jsonLines(t, filepath.Join(dir, ".results.jsonl"), &a.results)
	jsonLines(t, filepath.Join(dir, ".dead-letter.jsonl"), &a.deadLetters)
	require.NoFileExists(t, filepath.Join(dir, ".in-flight"))
	size, err := os.Stat(s.inbox(dir))
	require.NoError(t, err)
	offset, err := os.ReadFile(filepath.Join(dir, ".inbox-offset"))
	require.NoError(t, err)
	require.Equal(t, fmt.Sprint(size.Size()), string(offset))
	return a
}

func jsonLines[T any](t testing.TB, path string, into *[]T) {
	t.Helper()
	content, err := os.ReadFile(path)
	if os.IsNotExist(err) {
		return
	}
	require.NoError(t, err)
	for l := range bytes.Lines(content) {
		require.True(t, bytes.HasSuffix(l, []byte("\n")), "torn line in %s: %q", path, l)
		var v T
		require.NoError(t, json.Unmarshal(l, &v), "%s: %q", path, l)
		*into = append(*into, v)
	}
}

func textOf(r inbox.Result) string { return strings.TrimPrefix(r.Reply, "reply to ") }

// check holds what is promised against what the next session finds.
func (s situation) check(t *testing.T, c disktest.Crash) {
	a := s.nextSession(t, c.Dir)
	answered, dead := map[string]int{}, map[string]int{}
	var order []string
	for _, r := range a.results {
		require.True(t, strings.HasPrefix(r.Reply, "reply to "), "acknowledged unanswered: %+v", r)
		answered[textOf(r)]++
		order = append(order, textOf(r))
	}
	for _, d := range a.deadLetters {
		text := d.RawLine.Text
		if d.ID != "" {
			text = s.sent
		}
		dead[text]++
	}
	for _, text := range s.everything() {
		assert.LessOrEqual(t, answered[text], 1, "%q was acknowledged more than once", text)
		assert.LessOrEqual(t, dead[text], 1, "%q was dead-lettered more than once", text)
		assert.LessOrEqual(t, answered[text]+dead[text], 1, "%q was both answered and dead-lettered", text)
		if !s.mayVanish(text) {
			assert.Equal(t, 1, answered[text]+dead[text], "%q was lost: answered %v, dead %v", text, answered, dead)
		}
	}
	assert.IsNonDecreasing(t, order, "answered out of order")
	s.checkPromises(t, c, a, answered)
}

func (s situation) checkPromises(t *testing.T, c disktest.Crash, a after, answered map[string]int) {
	for _, p := range c.Promised {
		if text, ok := strings.CutPrefix(p, "printed "); ok && s.policy != "retry" {
			assert.NotContains(t, a.delivered, text, "it was printed before the crash, and the policy forbids to deliver it twice")
		}
		if p == "done" && strings.Contains(s.stdin, "reply to A") {
			assert.Equal(t, 1, answered["A"], "the answer was taken before the crash")
			assert.NotContains(t, a.delivered, "A")
		}
	}
	redelivered := 0
	for _, text := range a.delivered {
		if strings.Contains(strings.Join(c.Promised, "\n"), "printed "+text) {
			redelivered++
		}
	}
	assert.LessOrEqual(t, redelivered, 1, "more than one redelivery")
}

// everything is every entry that the inbox ever held.
func (s situation) everything() []string {
	var all []string
	switch {
	case strings.HasSuffix(s.entries, "refilled"):
		all = []string{"A", "B", "D", "E"}
	case s.entries == "none":
	default:
		content := s.entries
		if content == "" {
			content = lines
		}
		all = strings.Split(strings.TrimSuffix(content, "\n"), "\n")
	}
	if s.sent != "" {
		all = append(all, s.sent)
	}
	return all
}

// mayVanish is for what the policy drop forgets.
func (s situation) mayVanish(text string) bool {
	return text == "A" && strings.Contains(strings.Join(s.args, " "), "drop")
}

func TestKillAtEveryCall(t *testing.T) {
	for name, s := range situations {
		t.Run(name, func(t *testing.T) { s.scenario().EveryKill(t, s.check) })
	}
}

func TestPowerLossAtEveryCall(t *testing.T) {
	rounds := 6
	if testing.Short() {
		rounds = 0
	}
	for name, s := range situations {
		t.Run(name, func(t *testing.T) {
			s.scenario().EveryPowerLoss(t, 1, rounds, afterPowerLoss(s.check))
		})
		t.Run(name+", only what was synced, in one boot", func(t *testing.T) {
			s.scenario().EveryPowerLoss(t, 1, 0, func(t *testing.T, c disktest.Crash) {
				if strings.HasSuffix(t.Name(), "worst") {
					s.check(t, c)
				}
			})
		})
	}
}

func TestKillThenPowerLoss(t *testing.T) {
	if testing.Short() {
		t.Skip("takes half a minute: left out with -short")
	}
	for _, name := range []string{"acknowledge and deliver", "orphan to dead letter", "recover deadletter", "recover retry", "send"} {
		s := situations[name]
		t.Run(name, func(t *testing.T) {
			s.scenario().EveryKillThenPowerLoss(t, 1, 0, afterPowerLoss(s.check))
		})
	}
}

// afterPowerLoss lets the check see another boot, as it would be.
func afterPowerLoss(check func(*testing.T, disktest.Crash)) func(*testing.T, disktest.Crash) {
	return func(t *testing.T, c disktest.Crash) {
		host.TestOnlyBootID = "the next boot"
		defer func() { host.TestOnlyBootID = "" }()
		check(t, c)
	}
}

// TestFailAtEveryCall lets each call fail as a full or broken disk does: the
// hook approves or delivers, says why, and nothing is lost once the disk works.
func TestFailAtEveryCall(t *testing.T) {
	for _, errno := range []unix.Errno{unix.ENOSPC, unix.EIO, unix.EROFS} {
		for name, s := range situations {
			t.Run(unix.ErrnoName(errno)+" "+name, func(t *testing.T) {
				s.scenario().EveryFail(t, errno, func(t *testing.T, c disktest.Crash) {
					assert.NotEqual(t, 2, c.Result.ExitCode)
					assert.Zero(t, c.Result.Signal)
					if !strings.Contains(strings.Join(c.Promised, "\n"), "printed") && s.stdin != "" {
						assert.NotEmpty(t, c.Result.Stderr, "it failed without a sentence")
					}
					s.check(t, c)
				})
			})
		}
	}
}
