package script

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"encoding/json"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/tidwall/gjson"
)

// cmdTurn runs the hook at the end of a turn: `turn SESSION PROMPT ACTIVE REPLY
// [FLAG...]`.
func cmdTurn(ts *testscript.TestScript, neg bool, args []string) {
	plain(ts, neg, len(args) >= 4, "turn SESSION PROMPT ACTIVE REPLY [FLAG...]")
	fire(ts, stopInput(ts, args), args[4:])
}

// stopInput returns the client's input for a Stop, and writes the reply to the
// transcript.
func stopInput(ts *testscript.TestScript, args []string) map[string]any {
	active, err := strconv.ParseBool(args[2])
	ts.Check(err)
	if ts.Getenv("MUTE") != "all" {
		record(ts, "assistant", args[3], false)
	}
	in := input(ts, "Stop", args[0], args[1])
	in["stop_hook_active"], in["last_assistant_message"] = active, args[3]
	return in
}

// cmdEvent runs the hook at any event: `event NAME SESSION PROMPT [MEMBER=TEXT...]
// [-- FLAG...]`.
func cmdEvent(ts *testscript.TestScript, neg bool, args []string) {
	plain(ts, neg, len(args) >= 3, "event NAME SESSION PROMPT [MEMBER=TEXT...] [-- FLAG...]")
	in := input(ts, args[0], args[1], args[2])
	rest := args[3:]
	for len(rest) > 0 && rest[0] != "--" {
		name, text, _ := strings.Cut(rest[0], "=")
		in[name] = text
		rest = rest[1:]
	}
	if len(rest) > 0 {
		rest = rest[1:]
	}
	fire(ts, in, rest)
}

func input(ts *testscript.TestScript, event, session, prompt string) map[string]any {
	in := map[string]any{
		"hook_event_name": event, "session_id": session, "cwd": ts.MkAbs("."), "permission_mode": "default",
		"background_tasks": []any{}, "session_crons": []any{},
	}
	if prompt != "-" {
		in["prompt_id"] = prompt
	}
	if path := ts.Getenv("TRANSCRIPT"); path != "" {
		in["transcript_path"] = ts.MkAbs(path)
	}
	return in
}

// fire runs the hook to its end. Its exit status is always 0: an error approves.
func fire(ts *testscript.TestScript, in map[string]any, flags []string) {
	stdin, err := json.Marshal(in)
	ts.Check(err)
	cmd := command(ts, "heartbeat-stop", append([]string{"--inbox", ts.Getenv("INBOX")}, flags...)...)
	cmd.Stdin = bytes.NewReader(stdin)
	var out, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &stderr
	status := statusOf(ts, cmd.Run())
	output(ts, out.Bytes(), stderr.Bytes())
	decided(ts, out.Bytes(), status, "0")
}

// decided checks how a hook ended, and writes what it delivered to the transcript.
func decided(ts *testscript.TestScript, stdout []byte, status, want string) {
	if status != want {
		ts.Fatalf("exit status %s, want %s", status, want)
	}
	if !oneDecision(stdout) {
		ts.Fatalf("stdout is neither empty nor one JSON object: %q", stdout)
	}
	if text := gjson.GetBytes(stdout, "reason"); text.Exists() && ts.Getenv("MUTE") == "" {
		record(ts, "user", "Stop hook feedback:\n"+text.String(), true)
	}
}

// cmdSays adds a line to the transcript: `says user|assistant|system TEXT`. system is
// the client's own note.
func cmdSays(ts *testscript.TestScript, neg bool, args []string) {
	plain(ts, neg, len(args) == 2, "says user|assistant|system TEXT")
	record(ts, args[0], args[1], false)
}

// cmdRequest adds an answer that asks for a tool to the transcript, with what it took:
// `request ID TOKENS`.
func cmdRequest(ts *testscript.TestScript, neg bool, args []string) {
	plain(ts, neg, len(args) == 2, "request ID TOKENS")
	n, err := strconv.Atoi(args[1])
	ts.Check(err)
	b, err := json.Marshal(map[string]any{
		"type": "assistant", "uuid": rand.Text(), "isSidechain": false, "timestamp": time.Now().UTC(),
		"message": map[string]any{
			"id": args[0], "role": "assistant", "model": "claude-opus-5-5", "usage": map[string]int{"input_tokens": n},
			"content": []any{map[string]any{"type": "tool_use", "id": "toolu_" + args[0], "name": "Bash", "input": map[string]string{"command": "true"}}},
		},
	})
	ts.Check(err)
	appendTo(ts, ts.Getenv("TRANSCRIPT"), append(b, '\n'), os.O_APPEND)
}

// record adds a line in the client's format to the session's transcript, if there is
// one.
func record(ts *testscript.TestScript, role, text string, meta bool) {
	path := ts.Getenv("TRANSCRIPT")
	if path == "" {
		return
	}
	line := map[string]any{
		"type": role, "uuid": rand.Text(), "isSidechain": false, "isMeta": meta,
		"timestamp": cmp.Or(ts.Getenv("STAMP"), time.Now().UTC().Format("2006-01-02T15:04:05.000000000Z07:00")),
	}
	switch role {
	case "user":
		line["message"] = map[string]any{"role": role, "content": text}
	case "assistant":
		line["message"] = map[string]any{
			"role": role, "model": "claude-opus-5-5", "content": []any{map[string]any{"type": "text", "text": text}},
		}
	default:
		line["subtype"], line["content"] = "informational", text
	}
	b, err := json.Marshal(line)
	ts.Check(err)
	appendTo(ts, path, append(b, '\n'), os.O_APPEND)
}

// cmdDelivered checks that the hook delivered a text: `delivered [-context] TEXT`. TEXT
// may be JSON.
func cmdDelivered(ts *testscript.TestScript, neg bool, args []string) {
	path, others := "reason", map[string]string{"decision": "block"}
	if len(args) > 0 && args[0] == "-context" {
		path, others, args = "hookSpecificOutput.additionalContext", map[string]string{"hookSpecificOutput.hookEventName": "Stop"}, args[1:]
	}
	plain(ts, neg, len(args) == 1, "delivered [-context] TEXT")
	stdout := ts.ReadFile("stdout")
	others[path] = args[0]
	for path, want := range others {
		if !equals(gjson.Get(stdout, path), want) {
			ts.Fatalf("%s is %s, want %s", path, gjson.Get(stdout, path).Raw, want)
		}
	}
	if !strings.HasSuffix(stdout, "\n") || strings.Count(stdout, "\n") != 1 {
		ts.Fatalf("stdout is not one line: %q", stdout)
	}
}

// cmdApproved checks that the last hook approved the stop: its stdout is empty.
func cmdApproved(ts *testscript.TestScript, neg bool, args []string) {
	plain(ts, neg, len(args) == 0, "approved")
	if stdout := ts.ReadFile("stdout"); stdout != "" {
		ts.Fatalf("not approved: %q", stdout)
	}
}
