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

// situation is a state of an inbox of the entries A, B and C, and a command
// that changes it.
type situation struct {
	entries string // what is in the inbox; A, B and C when empty
	turns   int    // Stops of session s0 before: the last one's entry is in flight
	args    []string
	stdin   string
	policy  string // of the session that comes after the crash
	sent    string // what the command itself appends
}

const lines = "A\nB\nC\n"

func crashStop(session string, active bool, reply string) string {
	return fmt.Sprintf(`{"hook_event_name":"Stop","session_id":%q,"prompt_id":"p-%s","stop_hook_active":%v,"last_assistant_message":%q}`,
		session, session, active, reply)
}

var situations = map[string]situation{
	"first delivery":            {stdin: crashStop("s0", false, "ready")},
	"acknowledge and deliver":   {turns: 1, stdin: crashStop("s0", true, "reply to A")},
	"acknowledge and approve":   {entries: "A\n", turns: 1, stdin: crashStop("s0", true, "reply to A")},
	"orphan to dead letter":     {turns: 1, stdin: crashStop("s1", false, "ready")},
	"orphan to retry":           {turns: 1, stdin: crashStop("s1", false, "ready"), args: []string{"--on-orphan", "retry"}, policy: "retry"},
	"orphan exhausted":          {turns: 1, stdin: crashStop("s1", false, "ready"), args: []string{"--on-orphan", "retry", "--max-attempts", "1"}, policy: "retry"},
	"orphan dropped":            {turns: 1, stdin: crashStop("s1", false, "ready"), args: []string{"--on-orphan", "drop"}},
	"nothing to deliver inside": {entries: "\"\"\nA\nB\nC\n", stdin: crashStop("s0", false, "ready")},
	"failure noted":             {turns: 1, stdin: `{"hook_event_name":"StopFailure","session_id":"s0","error":"overloaded"}`},
	"session noted":             {stdin: `{"hook_event_name":"SessionStart","session_id":"s0"}`},
	"inbox refilled":            {entries: "A\nB\nC\nrefilled", turns: 2, stdin: crashStop("s0", true, "reply to B")},
	"recover deadletter":        {turns: 1, args: []string{"recover"}},
	"recover retry":             {turns: 1, args: []string{"recover", "--on-orphan", "retry"}, policy: "retry"},
	"recover drop":              {turns: 1, args: []string{"recover", "--on-orphan", "drop"}},
	"send":                      {args: []string{"send", "--id", "sent", "D"}, sent: "D"},
	"send into a new inbox":     {entries: "none", args: []string{"send", "--id", "sent", "D"}, sent: "D"},
	"send behind a torn line":   {entries: "A\nB\nC", args: []string{"send", "--settle", "0", "--id", "sent", "D"}, sent: "D"},
	"journal trimmed":           {turns: -1, stdin: crashStop("s0", true, "reply to A")},
}

func (s situation) inbox(dir string) string { return filepath.Join(dir, "inbox.jsonl") }

func (s situation) setup(t testing.TB, dir string) {
	content := s.entries
	switch {
	case content == "none":
		return
	case content == "" || strings.HasSuffix(content, "refilled"):
		content = lines
	}
	require.NoError(t, os.WriteFile(s.inbox(dir), []byte(content), 0o600))
	turns := s.turns
	if turns < 0 {
		fillJournal(t, dir)
		turns = 1
	}
	for i := range turns {
		reply := "ready"
		if i > 0 {
			reply = "reply to " + string(rune('A'+i-1))
		}
		require.Contains(t, inProcess(t, []string{"--inbox", s.inbox(dir)}, crashStop("s0", i > 0, reply)), "block")
	}
	if strings.HasSuffix(s.entries, "refilled") {
		require.NoError(t, os.WriteFile(s.inbox(dir), []byte("D\nE\n"), 0o600))
	}
}

// fillJournal leaves a journal that the next commit makes long enough to trim.
func fillJournal(t testing.TB, dir string) {
	args := []string{"--inbox", filepath.Join(dir, "inbox.jsonl")}
	for i := 0; ; i++ {
		inProcess(t, args, fmt.Sprintf(`{"hook_event_name":"SessionStart","session_id":"%d-%s"}`, i, strings.Repeat("x", 3000)))
		journal, err := os.ReadFile(filepath.Join(dir, ".inbox-journal"))
		require.NoError(t, err)
		if len(bytes.TrimRight(journal, "\x00")) > 215<<10 {
			return
		}
	}
}

func (s situation) scenario() disktest.Scenario {
	return disktest.Scenario{
		Setup: s.setup,
		Run: func(dir string) disktest.Command {
			args := s.args
			if len(args) == 0 || strings.HasPrefix(args[0], "-") {
				args = append([]string{"--inbox", s.inbox(dir)}, args...)
			} else {
				args = append([]string{args[0], "--inbox", s.inbox(dir)}, args[1:]...)
			}
			return disktest.Command{Name: "command", Args: args, Stdin: s.stdin}
		},
	}
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
