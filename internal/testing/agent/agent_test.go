package agent_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/testing/agent"
)

// hookDir names, for the hook that this test binary is to its agents, the
// directory that it keeps its script and its notes in.
const hookDir = "HEARTBEAT_TEST_HOOK"

func TestMain(m *testing.M) {
	if dir := os.Getenv(hookDir); dir != "" {
		os.Exit(hook(dir))
	}
	os.Exit(m.Run())
}

// hook notes what it got on stdin, and answers a Stop with the next line of its
// script.
func hook(dir string) int {
	input, err := io.ReadAll(os.Stdin)
	if err != nil {
		return 1
	}
	notes, err := os.OpenFile(filepath.Join(dir, "events"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return 1
	}
	fmt.Fprintf(notes, "%s\n", input)
	fmt.Fprintf(os.Stderr, "noted %d\nargument %s\n", len(input), os.Args[1])
	if err := notes.Close(); err != nil {
		return 1
	}
	var event struct {
		Name string `json:"hook_event_name"`
	}
	if json.Unmarshal(input, &event) != nil || event.Name != "Stop" {
		return 0
	}
	path := filepath.Join(dir, "script")
	script, err := os.ReadFile(path)
	if err != nil {
		return 1
	}
	line, rest, _ := bytes.Cut(script, []byte("\n"))
	if os.WriteFile(path, rest, 0o600) != nil {
		return 1
	}
	if text, wakes := bytes.CutPrefix(line, []byte("wake ")); wakes {
		fmt.Fprintf(os.Stderr, "%s\n", text)
		return 2
	}
	if string(line) == "fail" {
		fmt.Fprintln(os.Stderr, "out of order")
		return 3
	}
	fmt.Printf("%s\n", line)
	return 0
}

// newAgent is an agent whose hook answers with the script's lines.
func newAgent(t *testing.T, script ...string) (a *agent.Agent, dir string) {
	t.Helper()
	dir = t.TempDir()
	t.Setenv(hookDir, dir)
	t.Setenv("GORACE", "atexit_sleep_ms=0")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "script"), []byte(strings.Join(script, "\n")), 0o600))
	return &agent.Agent{
		Hook:   []string{os.Args[0], "--inbox"},
		Answer: func(text string) string { return "re " + text },
	}, dir
}

func lines(t *testing.T, path string) (all []map[string]any) {
	t.Helper()
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	for l := range bytes.Lines(b) {
		var v map[string]any
		require.NoError(t, json.Unmarshal(l, &v))
		all = append(all, v)
	}
	return all
}

func blockOf(text string) string {
	b, err := json.Marshal(map[string]string{"decision": "block", "reason": text})
	if err != nil {
		panic(err)
	}
	return string(b)
}

func TestSessionGoesOnWhileBlocked(t *testing.T) {
	a, dir := newAgent(t, blockOf("one\ntwo"), `{"hookSpecificOutput":{"hookEventName":"Stop","additionalContext":"three"}}`, "", blockOf("never"))
	a.SessionID, a.Transcript = "s1", filepath.Join(dir, "transcript")
	var turns, stderr []string
	a.Turn = func(text, reply string) { turns = append(turns, text+" -> "+reply) }
	a.Stderr = func(line string) { stderr = append(stderr, line) }
	require.NoError(t, a.Run(context.Background(), "begin"))
	assert.Equal(t, []string{"begin -> re begin", "one\ntwo -> re one\ntwo", "three -> re three"}, turns)
	assert.Contains(t, stderr, "argument --inbox")

	events := lines(t, filepath.Join(dir, "events"))
	require.Len(t, events, 5)
	var names []string
	for _, e := range events {
		names = append(names, e["hook_event_name"].(string))
		assert.Equal(t, "s1", e["session_id"])
		assert.Equal(t, events[0]["prompt_id"], e["prompt_id"], "one prompt of a person")
		assert.Equal(t, a.Transcript, e["transcript_path"])
	}
	assert.Equal(t, []string{"SessionStart", "Stop", "Stop", "Stop", "SessionEnd"}, names)
	assert.Equal(t, false, events[1]["stop_hook_active"])
	assert.Equal(t, true, events[2]["stop_hook_active"])
	assert.Equal(t, "re begin", events[1]["last_assistant_message"])
	assert.Equal(t, "re three", events[3]["last_assistant_message"])

	var said []string
	for _, l := range lines(t, a.Transcript) {
		m := l["message"].(map[string]any)
		assert.Equal(t, l["type"], m["role"])
		said = append(said, fmt.Sprint(m["role"], " ", m["content"], " ", l["isMeta"]))
	}
	assert.Equal(t, []string{
		"user begin false", "assistant re begin false",
		"user Stop hook feedback:\none\ntwo true", "assistant re one\ntwo false",
		"user Stop hook feedback:\nthree true", "assistant re three false",
	}, said)
}

// Sessions and prompts have names of their own.
func TestEachRunIsAnotherSession(t *testing.T) {
	seen := map[any]bool{}
	for range 2 {
		a, dir := newAgent(t, "")
		require.NoError(t, a.Run(context.Background(), "begin"))
		e := lines(t, filepath.Join(dir, "events"))[0]
		assert.Len(t, e["session_id"], 26)
		seen[e["session_id"]], seen[e["prompt_id"]] = true, true
	}
	assert.Len(t, seen, 4)
}

// A hook that fails ends the session, which is told of its end all the same.
func TestHookFails(t *testing.T) {
	for name, c := range map[string]struct{ script, says string }{
		"status":      {"fail", "out of order"},
		"no decision": {"hello", "no decision"},
	} {
		t.Run(name, func(t *testing.T) {
			a, dir := newAgent(t, c.script)
			assert.ErrorContains(t, a.Run(context.Background(), "begin"), c.says)
			events := lines(t, filepath.Join(dir, "events"))
			assert.Equal(t, "SessionEnd", events[len(events)-1]["hook_event_name"])
		})
	}
}

// A hook that is killed is no approval, and the session is told of its end.
func TestHookIsKilled(t *testing.T) {
	a, dir := newAgent(t, blockOf("one"), blockOf("two"))
	var started []string
	a.Started = func(event string, hook *os.Process) {
		if started = append(started, event); len(started) == 3 {
			require.NoError(t, hook.Kill())
		}
	}
	err := a.Run(context.Background(), "begin")
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit)
	assert.Equal(t, "signal: killed", exit.Error())
	assert.Equal(t, []string{"SessionStart", "Stop", "Stop", "SessionEnd"}, started)
	events := lines(t, filepath.Join(dir, "events"))
	assert.Equal(t, "SessionEnd", events[len(events)-1]["hook_event_name"])
}

func TestHookIsMissing(t *testing.T) {
	a, _ := newAgent(t)
	a.Hook = []string{filepath.Join(t.TempDir(), "none")}
	assert.ErrorContains(t, a.Run(context.Background(), "begin"), "none")
}

func TestRunEndsWithItsContext(t *testing.T) {
	a, _ := newAgent(t, blockOf("one"), blockOf("two"), blockOf("three"))
	ctx, cancel := context.WithCancel(context.Background())
	turns := 0
	a.Turn = func(string, string) {
		if turns++; turns == 2 {
			cancel()
		}
	}
	assert.ErrorIs(t, a.Run(ctx, "begin"), context.Canceled)
	assert.Equal(t, 2, turns)
}
