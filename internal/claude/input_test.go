package claude_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/claude"
)

func TestStopInput(t *testing.T) {
	in, err := claude.ParseInput([]byte(`{"session_id":"6b1f/../x","transcript_path":"t.jsonl","cwd":"w","prompt_id":"p1",
		"permission_mode":"default","hook_event_name":"Stop","stop_hook_active":true,"last_assistant_message":"caf\u00e9\n\ud83d\ude00",
		"background_tasks":[],"effort":{"level":"high"},"future":{"deep":[[{}]]}}`))
	require.NoError(t, err)
	assert.Equal(t, &claude.Input{
		Event: claude.EventStop, SessionID: "6b1f/../x", PromptID: "p1", TranscriptPath: "t.jsonl", Dir: "w", StopHookActive: true,
		LastMessage: "café\n😀",
	}, in)
}

func TestSubagentInput(t *testing.T) {
	in, err := claude.ParseInput([]byte(`{"hook_event_name":"SubagentStop","session_id":"s","agent_id":"a1","agent_type":"Explore"}`))
	require.NoError(t, err)
	assert.Equal(t, &claude.Input{Event: claude.EventSubagentStop, SessionID: "s", AgentID: "a1"}, in)
}

func TestFailureInput(t *testing.T) {
	in, err := claude.ParseInput([]byte(`{"hook_event_name":"StopFailure","session_id":"s","error":"rate_limit","last_assistant_message":"API Error"}`))
	require.NoError(t, err)
	assert.Equal(t, &claude.Input{Event: claude.EventStopFailure, SessionID: "s", Error: "rate_limit", LastMessage: "API Error"}, in)
}

func TestPromptAndNotificationInput(t *testing.T) {
	in, err := claude.ParseInput([]byte(`{"hook_event_name":"UserPromptSubmit","session_id":"s","prompt_id":"p","prompt":"do\nit"}`))
	require.NoError(t, err)
	assert.Equal(t, &claude.Input{Event: claude.EventUserPromptSubmit, SessionID: "s", PromptID: "p", Prompt: "do\nit"}, in)
	in, err = claude.ParseInput([]byte(`{"hook_event_name":"Notification","session_id":"s","notification_type":"permission_prompt","message":"may it?"}`))
	require.NoError(t, err)
	assert.Equal(t, &claude.Input{Event: claude.EventNotification, SessionID: "s", Notification: "permission_prompt", Message: "may it?"}, in)
}

// Members that a release lacks are missing or null.
func TestSparseInput(t *testing.T) {
	for _, s := range []string{"{}", `{"prompt_id":null,"stop_hook_active":null,"last_assistant_message":null}`} {
		in, err := claude.ParseInput([]byte(s))
		require.NoError(t, err)
		assert.Equal(t, &claude.Input{}, in)
	}
}

func TestBadInputIsRefused(t *testing.T) {
	for name, c := range map[string]struct{ text, says string }{
		"empty":              {"", "hook input (0 bytes)"},
		"no JSON":            {"hello", "hook input (5 bytes)"},
		"array":              {"[]", "not a JSON object"},
		"truncated":          {`{"session_id":"s","hook_event_na`, "cut off"},
		"two":                {"{}{}", "not valid JSON"},
		"session is number":  {`{"session_id":1}`, "session_id"},
		"active is text":     {`{"stop_hook_active":"true"}`, "stop_hook_active"},
		"message is object":  {`{"last_assistant_message":{"text":"x"}}`, "last_assistant_message"},
		"event is list":      {`{"hook_event_name":["Stop"]}`, "hook_event_name"},
		"prompt is boolean":  {`{"prompt_id":false}`, "prompt_id"},
		"agent is number":    {`{"agent_id":0}`, "agent_id"},
		"transcript is list": {`{"transcript_path":[]}`, "transcript_path"},
		"error is object":    {`{"error":{}}`, "error"},
		"prompt is list":     {`{"prompt":["do it"]}`, "prompt"},
		"type is number":     {`{"notification_type":1}`, "notification_type"},
		"message is boolean": {`{"message":true}`, "message"},
	} {
		t.Run(name, func(t *testing.T) {
			in, err := claude.ParseInput([]byte(c.text))
			assert.ErrorContains(t, err, c.says)
			assert.Nil(t, in)
		})
	}
}

func TestLargeInput(t *testing.T) {
	long := strings.Repeat("é\"\n", 10<<20/4)
	text, err := json.Marshal(map[string]any{"hook_event_name": "Stop", "last_assistant_message": long})
	require.NoError(t, err)
	in, err := claude.ParseInput(text)
	require.NoError(t, err)
	assert.True(t, in.LastMessage == long)
}

const deepChild = "HEARTBEAT_TEST_DEEP"

// Ten megabytes of brackets must not end the process: a stack overflow cannot be
// recovered, and the hook would exit with status 2.
func TestDeeplyNestedInput(t *testing.T) {
	if open := os.Getenv(deepChild); open != "" {
		text := `{"hook_event_name":"Stop","x":` + strings.Repeat(open, 10<<20/len(open))
		if _, err := claude.ParseInput([]byte(text)); err == nil {
			t.Error("it was taken for valid")
		}
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestDeeplyNestedInput$")
	cmd.Env = append(os.Environ(), deepChild+"=[")
	out, err := cmd.CombinedOutput()
	first, _, _ := bytes.Cut(out, []byte("\n\n"))
	assert.NoError(t, err, "%s", first)
}

// FuzzParseInput compares ParseInput with encoding/json.
func FuzzParseInput(f *testing.F) {
	for _, s := range []string{
		"", "{}", "[]", `{"session_id":"s","stop_hook_active":true}`, `{"session_id":1}`, `{"SESSION_ID":"s"}`, `{"error":"\ud800\u0041"}`,
		"{\"last_assistant_message\":\"\xff\"}", `{"session_id":"a","session_id":null}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		in, err := claude.ParseInput(text)
		if err != nil {
			assert.Nil(t, in)
			assert.ErrorContains(t, err, "hook input")
			return
		}
		var members map[string]json.RawMessage
		require.NoError(t, json.Unmarshal(text, &members))
		for name, got := range map[string]string{
			"hook_event_name": in.Event, "session_id": in.SessionID, "prompt_id": in.PromptID, "agent_id": in.AgentID,
			"transcript_path": in.TranscriptPath, "last_assistant_message": in.LastMessage, "error": in.Error,
			"prompt": in.Prompt, "notification_type": in.Notification, "message": in.Message,
		} {
			assert.True(t, utf8.ValidString(got), name)
			var want string
			if raw, ok := members[name]; ok {
				require.NoError(t, json.Unmarshal(raw, &want), name)
			}
			if utf8.Valid(text) {
				assert.Equal(t, want, got, name)
			}
		}
	})
}

// A session that is resumed in another directory goes on with the transcript that it has.
func TestInputOfAResumeElsewhere(t *testing.T) {
	projects := filepath.Join(t.TempDir(), "*[a-")
	there, named := filepath.Join(projects, "old", "s.jsonl"), filepath.Join(projects, "new", "s.jsonl")
	start := func(source string) string {
		in, err := claude.ParseInput(fmt.Appendf(nil, `{"hook_event_name":"SessionStart","source":%q,"transcript_path":%q}`, source, named))
		require.NoError(t, err)
		in.FixResumedTranscript()
		return in.TranscriptPath
	}
	assert.Equal(t, named, start("resume"), "there is none")
	require.NoError(t, os.MkdirAll(filepath.Dir(there), 0o700))
	require.NoError(t, os.WriteFile(there, []byte("{}\n"), 0o600))
	assert.Equal(t, there, start("resume"))
	assert.Equal(t, named, start("startup"))
	require.NoError(t, os.Mkdir(filepath.Dir(named), 0o700))
	require.NoError(t, os.WriteFile(named, []byte("{}\n"), 0o600))
	assert.Equal(t, named, start("resume"))
	t.Chdir(t.TempDir())
	require.NoError(t, os.Mkdir("only", 0o700))
	named = ""
	assert.Empty(t, start("resume"), "a session without a transcript has none here either")
}

// TestAReportThatTheClientKeeps has the lines of a client (2.1.329) around the end of a background task.
func TestAReportThatTheClientKeeps(t *testing.T) {
	t.Parallel()
	const (
		report   = `<task-notification>\n<task-id>b7</task-id>\n<summary>make all: failed</summary>\n</task-notification>`
		enqueue  = `{"type":"queue-operation","operation":"enqueue","content":"` + report + `"}`
		absorbed = `{"type":"queue-operation","operation":"remove","content":"` + report + `"}`
		typed    = `{"type":"queue-operation","operation":"enqueue","content":"and the name?"}`
		tool     = `{"type":"user","uuid":"u1","promptId":"p1","message":{"content":[{"type":"tool_result","content":"started b7"}]}}`
		prompt   = `{"type":"user","uuid":"u2","promptId":"p2","message":{"content":"` + report + `"}}`
		other    = `{"type":"user","uuid":"u3","promptId":"p0","message":{"content":"hello"}}`
		answer   = `{"type":"assistant","uuid":"a1","message":{"content":[{"type":"text","text":"it runs"}]}}`
	)
	for name, c := range map[string]struct {
		prompt string
		lines  []string
		keeps  bool
		later  bool
	}{
		"none":                             {"p1", []string{tool, typed, answer}, false, false},
		"ended while the model answered":   {"p1", []string{tool, enqueue, answer}, true, false},
		"its line overtook the answer's":   {"p1", []string{tool, answer, enqueue}, true, false},
		"told with a tool's result":        {"p1", []string{tool, enqueue, absorbed, answer}, false, false},
		"told in this turn":                {"p2", []string{tool, answer, enqueue, prompt, answer}, false, false},
		"the turn's lines are yet to come": {"p2", []string{tool, answer, enqueue}, false, true},
		"the answer is yet to come":        {"p1", []string{other, answer, enqueue, tool}, false, true},
		"a client that names no prompts":   {"", []string{other, enqueue, answer}, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "t.jsonl")
			require.NoError(t, os.WriteFile(path, []byte(strings.Join(c.lines, "\n")+"\n"), 0o600))
			in := claude.Input{PromptID: c.prompt, TranscriptPath: path, LastMessage: "it runs"}
			kept, current := in.Reports(0)
			assert.Equal(t, c.later, len(kept) > 0 && !current)
			if c.keeps || c.later {
				assert.Equal(t, []claude.Task{{ID: "b7", Text: "make all: failed"}}, kept)
			} else {
				assert.Empty(t, kept)
			}
			kept, _ = in.Reports(claude.TranscriptSize(path))
			assert.Empty(t, kept, "of a client before")
		})
	}
}
