package hook_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/inbox"
	"heartbeat/internal/cli"
	"heartbeat/internal/hook"
	"heartbeat/internal/testing/crash"
)

// situation is a state of an inbox with entries A, B and C, and a command that changes it.
type situation struct {
	entries string                                      // the inbox's content; empty means A, B and C
	turns   int                                         // earlier Stops of session s0: the last one's entry is in flight
	prepare func(t testing.TB, s situation, dir string) // makes other changes before
	args    []string
	wired   []string // flags of every session and of the command
	stdin   string
	env     []string
	codex   bool   // the client is Codex
	wakes   bool   // hands an entry over by exit status
	policy  string // of the session after the crash

	// then is what whoever ran the command does after the crash, without knowing whether the
	// command took effect.
	then []string
	// all are all entries ever, in the order in which they are answered. Empty means those of the inbox.
	all []string
	// vanishing are the entries of which the command may leave no trace.
	vanishing []string
	// holds checks what the crash left, before anything else happens.
	holds func(t *testing.T, s situation, c crash.Crash)
}

const lines = "A\nB\nC\n"

func crashStop(session string, active bool, reply string) string {
	return fmt.Sprintf(`{"hook_event_name":"Stop","session_id":%q,"prompt_id":"p-%s","stop_hook_active":%v,"last_assistant_message":%q}`,
		session, session, active, reply)
}

var (
	sendD     = []string{"send", "--id", "sent", "D"}
	sendBatch = []string{"send", "--batch", "DIR/batch.jsonl"}
	sendLater = []string{"send", "--id", "sent", "--not-before", "2999-01-01", "D"}
	abcd      = []string{"A", "B", "C", "D"}

	// longA to longE are entries of which a few exceed a block.
	longA, longB, longC, longD, longE = longEntry("A"), longEntry("B"), longEntry("C"), longEntry("D"), longEntry("E")
	longEntries                       = strings.Join([]string{longA, longB, longC, longD, longE, ""}, "\n")
)

func longEntry(name string) string { return name + strings.Repeat("x", 5000) }

var situations = map[string]situation{
	"first delivery":            {stdin: crashStop("s0", false, "ready")},
	"acknowledge and deliver":   {turns: 1, stdin: crashStop("s0", true, "reply to A")},
	"acknowledge and approve":   {entries: "A\n", turns: 1, stdin: crashStop("s0", true, "reply to A")},
	"orphan to dead letter":     {turns: 1, stdin: crashStop("s1", false, "ready")},
	"orphan to retry":           {turns: 1, stdin: crashStop("s1", false, "ready"), args: []string{"--on-orphan", "retry"}, policy: "retry"},
	"orphan exhausted":          {turns: 1, stdin: crashStop("s1", false, "ready"), args: []string{"--on-orphan", "retry", "--max-attempts", "1"}, policy: "retry"},
	"orphan dropped":            {turns: 1, stdin: crashStop("s1", false, "ready"), args: []string{"--on-orphan", "drop"}, vanishing: []string{"A"}},
	"nothing to deliver inside": {entries: "\"\"\nA\nB\nC\n", stdin: crashStop("s0", false, "ready")},
	"failure noted":             {turns: 1, stdin: `{"hook_event_name":"StopFailure","session_id":"s0","error":"overloaded"}`},
	"session noted":             {stdin: `{"hook_event_name":"SessionStart","session_id":"s0"}`},
	"inbox refilled":            {turns: 2, prepare: refill, stdin: crashStop("s0", true, "reply to B"), all: []string{"A", "B", "D", "E"}},
	"recover deadletter":        {turns: 1, args: []string{"recover"}},
	"recover retry":             {turns: 1, args: []string{"recover", "--on-orphan", "retry"}, policy: "retry"},
	"recover drop":              {turns: 1, args: []string{"recover", "--on-orphan", "drop"}, vanishing: []string{"A"}},
	"said done":                 {turns: 1, prepare: said(inbox.Verdict{Kind: inbox.VerdictDone, Text: "42"}), stdin: crashStop("s0", true, "reply to A")},
	"said done and died":        {turns: 1, prepare: said(inbox.Verdict{Kind: inbox.VerdictDone, Text: "42"}), stdin: crashStop("s1", false, "ready"), holds: neverAgain},
	"said rejected":             {turns: 1, prepare: said(inbox.Verdict{Kind: inbox.VerdictRejected, Text: "no"}), stdin: crashStop("s0", true, "I cannot"), holds: neverAgain},
	"said failed":               {turns: 1, prepare: said(inbox.Verdict{Kind: inbox.VerdictFailed, Text: "no"}), stdin: crashStop("s0", true, "not yet"), policy: "retry"},
	"said failed, for later":    {turns: 1, prepare: said(inbox.Verdict{Kind: inbox.VerdictFailed, Text: "no", Until: &tomorrow}), stdin: crashStop("s0", true, "not yet")},
	"said failed and recovered": {turns: 1, prepare: said(inbox.Verdict{Kind: inbox.VerdictFailed, Text: "no", Until: &tomorrow}), args: []string{"recover"}},
	"check passes":              {turns: 1, wired: []string{"--check", "true"}, stdin: crashStop("s0", true, "reply to A")},
	"check passes for a retry":  {turns: 1, wired: []string{"--check", "true"}, stdin: crashStop("s0", true, "reply to A"), policy: "retry"},
	"check fails":               {turns: 1, wired: []string{"--check", unmet}, stdin: crashStop("s0", true, "A is done"), holds: unanswered},
	"check fails for a retry":   {turns: 1, wired: []string{"--check", unmet}, stdin: crashStop("s0", true, "A is done"), holds: unanswered, policy: "retry"},
	"check fails, said done":    {turns: 1, wired: []string{"--check", unmet}, prepare: said(inbox.Verdict{Kind: inbox.VerdictDone, Text: "42"}), stdin: crashStop("s0", true, "A is done"), holds: unanswered},
	"check fails for good":      {turns: 1, wired: []string{"--check", unmet, "--check-tries", "1"}, stdin: crashStop("s0", true, "A is done"), holds: unanswered},
	"journal trimmed":           {prepare: fillJournal, stdin: crashStop("s0", true, "reply to A")},

	"send":                    {args: sendD, then: sendD, all: abcd},
	"send into a new inbox":   {entries: "none", args: sendD, then: sendD, all: []string{"D"}},
	"send behind a torn line": {entries: "A\nB\nC", args: append(slices.Clone(sendD), "--settle", "0"), then: append(slices.Clone(sendD), "--settle", "0"), all: abcd},
	"send a batch":            {prepare: writeBatch, args: sendBatch, then: sendBatch, holds: batchWhole, all: append(slices.Clone(abcd), "E", "F")},
	"send for later":          {args: sendLater, then: sendLater, holds: stagedOrNot, all: abcd},

	"promoted by a stop": {turns: 1, prepare: schedule, stdin: crashStop("s0", true, "reply to A"), holds: promotedOnce, all: append(slices.Clone(abcd), "E")},
	"promoted by resume": {turns: 1, prepare: schedule, args: []string{"resume"}, holds: promotedOnce, all: append(slices.Clone(abcd), "E")},

	"over its limit": {
		turns: 1, prepare: spend, stdin: afterTools, args: []string{"--max-tokens-per-entry", "1k", "--signal-file", "DIR/signal"}, holds: stoppedAnyway,
	},
	"over the day's limit": {
		turns: 1, prepare: spend, stdin: afterTools, args: []string{"--max-tokens-per-day", "6k"}, holds: stoppedAnyway,
		then: []string{"resume"}, policy: "retry",
	},

	"pause":  {turns: 1, args: []string{"pause", "--reason", "x"}, then: []string{"resume"}, holds: pausedIfSaid},
	"resume": {turns: 1, prepare: pauseBefore, args: []string{"resume"}, then: []string{"resume"}, holds: resumedIfSaid},

	"requeue": {
		prepare: setAsideTwo, args: []string{"dead-letter", "requeue", "--all"}, then: []string{"dead-letter", "requeue", "--all"},
		holds: requeuedOrNot, all: []string{"C", "A", "B"},
	},
	"requeue behind a torn line": {
		entries: "A\nB\nC", prepare: setAsideTwo, args: []string{"dead-letter", "requeue", "--all", "--settle", "0"},
		then: []string{"dead-letter", "requeue", "--all", "--settle", "0"}, holds: requeuedOrNot, all: []string{"C", "A", "B"},
	},
	"purge": {
		prepare: setAsideTwo, args: []string{"dead-letter", "purge", "--all", "--yes"}, then: []string{"dead-letter", "purge", "--all", "--yes"},
		holds: purgedOrNot, vanishing: []string{"A", "B"},
	},
	"late answer": {turns: 1, prepare: setAsideNow, stdin: crashStop("s0", true, "did A"), holds: keptOrNot},
	"accept":      {turns: 1, prepare: answeredLate, args: []string{"dead-letter", "accept", entryIDOf("A")}, holds: acceptedOrNot},
	"cancel": {
		turns: 1, args: []string{"cancel", entryIDOf("B")}, then: []string{"cancel", "--all"}, holds: canceledOrNot,
	},
	"cancel all": {
		turns: 1, prepare: schedule, args: []string{"cancel", "--all"}, then: []string{"cancel", "--all"}, holds: canceledOrNot,
		all: append(slices.Clone(abcd), "E"),
	},
	"passed over": {turns: 1, prepare: cancelBefore, stdin: crashStop("s0", true, "reply to A"), all: []string{"A", "B", "C"}},
	"compact":     {entries: longEntries, turns: 4, args: []string{"compact"}, then: []string{"compact"}},
	"compact and trim": {
		entries: longEntries, turns: 4, prepare: requeueBefore, args: []string{"compact", "--keep", "0"}, then: []string{"compact", "--keep", "0"},
		all: []string{longA, longB, longC, longE, longD}, vanishing: []string{longA, longB, longC},
	},
}

func (s situation) inbox(dir string) string { return filepath.Join(dir, "inbox.jsonl") }

func (s situation) content() string {
	switch s.entries {
	case "":
		return lines
	case "none":
		return ""
	}
	return s.entries
}

// everything returns all entries ever.
func (s situation) everything() []string {
	if s.all != nil {
		return s.all
	}
	return strings.Split(strings.TrimSuffix(s.content(), "\n"), "\n")
}

// answeredBefore returns the entries that were settled before the command.
func (s situation) answeredBefore() []string { return s.everything()[:max(0, s.turns-1)] }

func (s situation) setup(t testing.TB, dir string) {
	if s.entries != "none" {
		require.NoError(t, os.WriteFile(s.inbox(dir), []byte(s.content()), 0o600))
	}
	reply := "ready"
	for i := range s.turns {
		var d struct{ Reason string }
		out := s.tell(t, dir, s.command(dir, s.wired), crashStop("s0", i > 0, reply))
		require.NoError(t, json.Unmarshal([]byte(out), &d))
		reply = "reply to " + d.Reason
	}
	if s.prepare != nil {
		s.prepare(t, s, dir)
	}
	s.happened(t, s.stdin, dir)
}

// tell runs the hook for an input of the client, and returns what the hook printed.
func (s situation) tell(t testing.TB, dir string, args []string, stdin string) string {
	s.happened(t, stdin, dir)
	return inProcess(t, args, s.input(stdin, dir))
}

// inDir replaces DIR with the test's directory.
func inDir(text, dir string) string { return strings.ReplaceAll(text, "DIR", dir) }

// command returns the arguments of a command for the inbox in dir.
func (s situation) command(dir string, args []string) []string {
	all := []string{"--inbox", s.inbox(dir)}
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		all, args = append([]string{args[0]}, all...), args[1:]
	}
	for _, a := range args {
		all = append(all, inDir(a, dir))
	}
	return all
}

func (s situation) scenario() crash.Scenario {
	return crash.Scenario{
		Setup: s.setup,
		Run: func(dir string) crash.Command {
			env := append([]string{"CLAUDE_PID=", "CLAUDE_CODE_ENTRYPOINT=cli"}, s.env...)
			return crash.Command{Name: "command", Args: s.command(dir, slices.Concat(s.args, s.wired)), Stdin: s.input(s.stdin, dir), Env: env}
		},
		Want: func(t testing.TB, whole crash.Result) {
			want := cli.ExitOK
			if s.wakes {
				want = hook.ExitWake
			}
			require.Equal(t, want, whole.ExitCode, whole.Stderr)
		},
	}
}

// unmet is a check that rejects a false claim.
const unmet = `test "$HEARTBEAT_REPLY" != "A is done"`

// unanswered wants no result: the check has failed, or did not finish.
func unanswered(t *testing.T, _ situation, c crash.Crash) {
	assert.NoFileExists(t, filepath.Join(c.Dir, ".results.jsonl"), "it counts as answered, and no check has passed")
}

// afterTools is reported between two requests of A's turn.
const afterTools = `{"hook_event_name":"PostToolBatch","session_id":"s0","prompt_id":"p-s0","transcript_path":"DIR/transcript.jsonl"}`

// spend is a session that spent 2,000 tokens before A was delivered, and 5,000 since.
func spend(t testing.TB, _ situation, dir string) {
	const transcript = `{"type":"user","message":{"content":"begin"}}
{"type":"assistant","message":{"id":"m1","usage":{"input_tokens":2000},"content":[{"type":"text","text":"ready"}]}}
{"type":"user","isMeta":true,"message":{"content":"Stop hook feedback:\nA"}}
{"type":"assistant","message":{"id":"m2","usage":{"input_tokens":5000},"content":[{"type":"tool_use","id":"t1"}]}}
`
	require.NoError(t, os.WriteFile(filepath.Join(dir, "transcript.jsonl"), []byte(transcript), 0o600))
}

// stoppedAnyway lets the turn continue, as it does if the client was told nothing. The next event stops it.
func stoppedAnyway(t *testing.T, s situation, c crash.Crash) {
	out := inProcess(t, s.command(c.Dir, s.args), inDir(s.stdin, c.Dir))
	assert.Contains(t, out, `"continue":false`, "nobody stops the turn")
	again := inProcess(t, s.command(c.Dir, s.args), inDir(s.stdin, c.Dir))
	assert.Equal(t, out, again)
}

// refill truncates the inbox and fills it again, as a launcher does.
func refill(t testing.TB, s situation, dir string) {
	require.NoError(t, os.WriteFile(s.inbox(dir), []byte("D\nE\n"), 0o600))
}

func writeBatch(t testing.TB, _ situation, dir string) {
	const batch = `{"id":"b1","prompt":"D"}` + "\n" + `{"id":"b2","prompt":"E"}` + "\n" + `{"id":"b3","prompt":"F"}` + "\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, "batch.jsonl"), []byte(batch), 0o600))
}

// schedule leaves D, which is due, and E, which is not.
func schedule(t testing.TB, _ situation, dir string) {
	const scheduled = `{"id":"d","prompt":"D","not_before":"2001-01-01T00:00:00Z"}` + "\n" + `{"id":"e","prompt":"E","not_before":"2999-01-01T00:00:00Z"}` + "\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, ".scheduled.jsonl"), []byte(scheduled), 0o600))
}

var tomorrow = time.Now().Add(24 * time.Hour).UTC()

// said lets the agent give a verdict on the entry in flight.
func said(v inbox.Verdict) func(t testing.TB, s situation, dir string) {
	return func(t testing.TB, s situation, dir string) {
		s.settle(t, dir, func(_ *inbox.Inbox, tx *inbox.Tx) {
			require.NoError(t, tx.Say(v))
			require.NoError(t, tx.Commit())
		})
	}
}

// cancelBefore cancels B, which stands behind the entry in flight.
func cancelBefore(t testing.TB, s situation, dir string) {
	inProcess(t, s.command(dir, []string{"cancel", entryIDOf("B")}), "")
}

func pauseBefore(t testing.TB, s situation, dir string) {
	inProcess(t, s.command(dir, []string{"pause"}), "")
}

// setAsideTwo makes dead letters of A and B.
func setAsideTwo(t testing.TB, s situation, dir string) {
	for _, session := range []string{"s1", "s2"} {
		s.tell(t, dir, s.command(dir, nil), crashStop(session, false, "ready"))
		inProcess(t, s.command(dir, []string{"recover"}), "")
	}
}

// setAsideNow makes a dead letter of the entry in flight. answeredLate then ends its turn.
func setAsideNow(t testing.TB, s situation, dir string) {
	inProcess(t, s.command(dir, []string{"recover"}), "")
}

func answeredLate(t testing.TB, s situation, dir string) {
	setAsideNow(t, s, dir)
	s.tell(t, dir, s.command(dir, nil), crashStop("s0", true, "reply to A"))
}

// requeueBefore makes a dead letter of the entry in flight, and requeues it.
func requeueBefore(t testing.TB, s situation, dir string) {
	inProcess(t, s.command(dir, []string{"recover"}), "")
	inProcess(t, s.command(dir, []string{"dead-letter", "requeue", "--all"}), "")
}

// fillJournal leaves a journal that the next commit makes long enough to trim, with A in flight.
func fillJournal(t testing.TB, s situation, dir string) {
	args := []string{"--inbox", filepath.Join(dir, "inbox.jsonl")}
	for i := 0; ; i++ {
		inProcess(t, args, fmt.Sprintf(`{"hook_event_name":"SessionStart","session_id":"%d-%s"}`, i, strings.Repeat("x", 3000)))
		journal, err := os.ReadFile(filepath.Join(dir, ".inbox-journal"))
		require.NoError(t, err)
		if len(bytes.TrimRight(journal, "\x00")) > 215<<10 {
			break
		}
	}
	inProcess(t, args, crashStop("s0", false, "ready"))
}
