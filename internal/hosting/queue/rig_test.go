package queue

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/inbox"
	"heartbeat/internal/cli"
	"heartbeat/internal/hook"
	"heartbeat/internal/hosting/stream"
	recovery "heartbeat/recover"
)

// rig is a session's queue, and what its client does to it.
type rig struct {
	*Queue
	t    *testing.T
	dir  string
	said []string // warnings
}

func newRig(t *testing.T, entries ...string) *rig {
	dir := t.TempDir()
	r := &rig{t: t, dir: dir}
	r.Queue = r.open()
	for _, text := range entries {
		_, ok, err := r.Put(t.Context(), "", text)
		require.NoError(t, err)
		require.True(t, ok)
	}
	return r
}

// open is the queue as another process finds it.
func (r *rig) open() *Queue {
	o := options(r.dir)
	o.Warn = func(s string) { r.said = append(r.said, s) }
	q, err := Open(o)
	require.NoError(r.t, err)
	return q
}

func options(dir string) Options {
	return Options{
		Inbox: filepath.Join(dir, "inbox", "inbox.jsonl"), Own: true, Dir: dir, Hook: "/bin/heartbeat-stop", Cwd: dir,
		Env:      []string{"HOME=" + dir},
		Settings: recovery.Settings{MaxAttempts: 3},
	}
}

// client is a client of a round: it runs the hook that its settings wire.
type standIn struct {
	*rig
	session, prompt, transcript string
	hook                        []string // its arguments
	heard                       string   // what its hook said last to people
}

// round takes the steps up to the client's start.
func (r *rig) round(resume string) (c *standIn, prompt string) {
	r.t.Helper()
	argv, err := r.Command([]string{"--print"}, resume)
	require.NoError(r.t, err)
	p, ok, err := r.First(r.t.Context())
	require.NoError(r.t, err)
	require.True(r.t, ok)
	require.NoError(r.t, r.Begin(r.t.Context()))
	return r.client(argv), p
}

// client is one with these arguments.
func (r *rig) client(argv []string) *standIn {
	c := &standIn{rig: r, prompt: "p1", session: "drawn by the client", transcript: filepath.Join(r.dir, "transcript.jsonl")}
	for i, arg := range argv {
		switch arg {
		case "--session-id", "--resume":
			c.session = argv[i+1]
		case "--settings":
			c.hook = hookIn(r.t, argv[i+1])
		}
	}
	return c
}

func hookIn(t *testing.T, path string) []string {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Contains(t, string(text), `"CLAUDE_CODE_STOP_HOOK_BLOCK_CAP": "0"`)
	return hookOf(text)
}

// hookOf is the arguments of the hook that settings wire.
func hookOf(text []byte) []string {
	var settings struct {
		Hooks map[string][]struct {
			Hooks []struct{ Args []string }
		}
	}
	if json.Unmarshal(text, &settings) != nil || len(settings.Hooks["UserPromptSubmit"]) != 1 {
		return nil
	}
	return settings.Hooks["Stop"][0].Hooks[0].Args
}

// fire runs the hook for an event and returns the text that it hands over.
func (c *standIn) fire(event string, more map[string]any) string {
	c.t.Helper()
	in := map[string]any{"hook_event_name": event, "session_id": c.session, "transcript_path": c.transcript}
	if event != "SessionStart" {
		in["prompt_id"] = c.prompt
	}
	for k, v := range more {
		in[k] = v
	}
	text, err := json.Marshal(in)
	require.NoError(c.t, err)
	stdin, err := os.CreateTemp(c.t.TempDir(), "stdin")
	require.NoError(c.t, err)
	defer func() { require.NoError(c.t, stdin.Close()) }()
	_, err = stdin.Write(text)
	require.NoError(c.t, err)
	_, err = stdin.Seek(0, 0)
	require.NoError(c.t, err)
	var out, stderr bytes.Buffer
	status := hook.Run(c.hook, cli.Streams{Command: hook.CommandName, In: stdin, Out: &out, Err: &stderr})
	require.Equal(c.t, cli.ExitOK, status, stderr.String())
	c.heard = stderr.String()
	var d struct{ Reason string }
	if out.Len() > 0 {
		require.NoError(c.t, json.Unmarshal(out.Bytes(), &d))
	}
	return d.Reason
}

func (c *standIn) start() { c.fire("SessionStart", map[string]any{"source": "startup"}) }

func (c *standIn) submit(prompt string) {
	c.t.Helper()
	require.Empty(c.t, c.fire("UserPromptSubmit", map[string]any{"prompt": prompt}))
}

// stop ends a turn with a reply, and returns what the hook hands over.
func (c *standIn) stop(reply string, active bool) string {
	c.t.Helper()
	return c.fire("Stop", map[string]any{"last_assistant_message": reply, "stop_hook_active": active})
}

// wrote adds a line to the transcript.
func (c *standIn) wrote(line map[string]any) {
	c.t.Helper()
	line["uuid"], line["sessionId"], line["promptId"] = "u", c.session, c.prompt
	text, err := json.Marshal(line)
	require.NoError(c.t, err)
	f, err := os.OpenFile(c.transcript, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	require.NoError(c.t, err)
	_, err = f.Write(append(text, '\n'))
	require.NoError(c.t, err)
	require.NoError(c.t, f.Close())
}

func (c *standIn) wrotePrompt(text string) {
	c.wrote(map[string]any{"type": "user", "message": map[string]any{"role": "user", "content": text}})
}

func (c *standIn) wroteReply(text string) {
	c.wrote(map[string]any{"type": "assistant", "message": map[string]any{"role": "assistant", "model": "m", "content": []any{map[string]any{"type": "text", "text": text}}}})
}

func (c *standIn) wroteSummary() {
	c.wrote(map[string]any{"type": "system", "subtype": "stop_hook_summary"})
}

// fates are the counts: answered, queued, in flight, dead-lettered.
func (r *rig) fates() []int {
	r.t.Helper()
	f, err := r.Fates([]string{stream.AnyTextFile})
	require.NoError(r.t, err)
	return []int{f.Answered, f.Queued, f.InFlight, f.DeadLettered}
}

// replies are those that the results keep, by the text of the entry.
func (r *rig) replies() map[string]string {
	r.t.Helper()
	all := map[string]string{}
	text, err := os.ReadFile(filepath.Join(r.dir, "inbox", ".results.jsonl"))
	if os.IsNotExist(err) {
		return all
	}
	require.NoError(r.t, err)
	for line := range strings.Lines(string(text)) {
		var result inbox.Result
		require.NoError(r.t, json.Unmarshal([]byte(line), &result))
		assert.NotContains(r.t, all, result.Prompt, "answered twice")
		all[result.Prompt] = result.Reply
	}
	return all
}

func (r *rig) settle(x Exit) recovery.Report {
	r.t.Helper()
	report, err := r.Settle(context.Background(), x)
	require.NoError(r.t, err)
	return report
}
