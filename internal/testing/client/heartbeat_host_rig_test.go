package client

import (
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	_ "modernc.org/sqlite" // the transcript store

	"heartbeat/internal/hosting/folder"
	"heartbeat/internal/testing/guild"
	"heartbeat/internal/testing/model"
	"heartbeat/internal/testing/script"
)

// house is a guild, the client as a program that hosts run, and a database for their
// sessions.
type house struct {
	*rig
	guild  *guild.Program
	claude string // the client, or a script in its place
	dir    string
	flags  []string
}

const guildTools = "mcp__nexus-guild__"

// newHouse has a guild that takes "cancelled", as one that moves over would.
func newHouse(t *testing.T, script model.Script) *house {
	t.Helper()
	return newHouseOf(t, guild.Options{Cancelled: true}, script)
}

func newHouseOf(t *testing.T, o guild.Options, script model.Script) *house {
	t.Helper()
	h := &house{rig: newRigWith(t, script)}
	h.claude, h.dir = h.binary, filepath.Dir(h.Home)
	for _, dir := range []string{"guild", "tmp"} {
		require.NoError(t, os.Mkdir(h.path(dir), 0o700))
	}
	o.State = h.path("guild.state")
	var err error
	h.guild, err = guild.Launch(o)
	require.NoError(t, err)
	t.Cleanup(func() { h.guild.Kill() })
	t.Cleanup(func() {
		if t.Failed() {
			logs, _ := filepath.Glob(h.path("logs/*.log"))
			for _, log := range logs {
				text, _ := os.ReadFile(log)
				t.Logf("%s:\n%s", filepath.Base(log), text[max(0, len(text)-6000):])
			}
		}
	})
	return h
}

func (h *house) path(name string) string { return filepath.Join(h.dir, name) }

func (h *house) db() string { return h.path("guild/nexus.db") }

// shell replaces the client with a script, in which $CLAUDE is the real one.
func (h *house) shell(script string) *house {
	h.t.Helper()
	h.claude = h.path("claude.sh")
	text := "#!/bin/bash\nCLAUDE='" + h.binary + "'\n" + script + "\n"
	require.NoError(h.t, os.WriteFile(h.claude, []byte(text), 0o700))
	return h
}

// onPath is a folder in which the client is called claude.
func (h *house) onPath() string {
	h.t.Helper()
	dir := h.path("bin")
	require.NoError(h.t, os.Mkdir(dir, 0o700))
	require.NoError(h.t, os.Symlink(h.claude, filepath.Join(dir, "claude")))
	return dir
}

// seed is the config of a session as the guild of the babysitter writes it.
func (h *house) seed(id, prompt string, tools ...guild.Tool) map[string]any {
	h.t.Helper()
	names, described := []string{}, []any{}
	for _, tool := range tools {
		require.NoError(h.t, h.guild.AddTool(tool))
		names = append(names, tool.Name)
		described = append(described, map[string]any{"name": tool.Name, "description": "does " + tool.Name, "method": tool.Method,
			"params": map[string]any{"properties": map[string]any{"q": map[string]any{"type": "string"}}}})
	}
	require.NoError(h.t, h.guild.Expect(id, names...))
	prompts, err := os.MkdirTemp(h.path("tmp"), "nsg-detached-")
	require.NoError(h.t, err)
	system := filepath.Join(prompts, "system-prompt.md")
	require.NoError(h.t, os.WriteFile(system, []byte("You work for a guild."), 0o600))
	return map[string]any{
		"sessionId": id, "guildToolUrl": h.guild.URL(), "dbPath": h.db(), "logDir": h.path("logs"),
		"claudeArgs": []string{"--setting-sources", "user", "--dangerously-skip-permissions", "--model", "sonnet", "--system-prompt-file", system},
		"cwd":        h.Project, "env": map[string]string{"IS_SANDBOX": "1", "CLAUDE_CODE_MAX_RETRIES": "0"},
		"prompt": prompt, "tools": described, "startedAt": "2026-11-22T10:00:00.000Z", "provider": "claude-code",
		"metadata": map[string]any{"trigger": "test"}, "systemPromptTmpDir": prompts,
	}
}

// host is a command of heartbeat-host, not yet started.
func (h *house) host(args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(filepath.Dir(h.stop), "heartbeat-host"), args...)
	cmd.Env = h.environ([]string{"TMPDIR=" + h.path("tmp"), "XDG_STATE_HOME=" + h.path("state")})
	cmd.Dir = h.dir
	return cmd
}

// verb runs a command of heartbeat-host that must not fail.
func (h *house) verb(args ...string) string {
	h.t.Helper()
	cmd := h.host(args...)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	require.NoError(h.t, err, "heartbeat-host %q: %s", args, &errs)
	return string(out)
}

// up is what start prints.
type up struct {
	SessionID, Socket string
	PID, PGID         int
}

// start starts a session, and returns once it is up.
func (h *house) start(config map[string]any) (u up) {
	h.t.Helper()
	cmd := h.host(append([]string{"start", "--claude", h.claude}, h.flags...)...)
	cmd.Stdin = strings.NewReader(asJSON(config))
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	require.NoError(h.t, err, "%s", &errs)
	require.NoError(h.t, json.Unmarshal(out, &u), "%s", out)
	return u
}

// send appends a prompt to a session.
func (h *house) send(id, text string) { h.t.Helper(); h.verb("send", id, text) }

func (h *house) state(id string) *folder.State {
	h.t.Helper()
	s, err := h.folder(id).Read()
	require.NoError(h.t, err)
	return s
}

func (h *house) folder(id string) folder.Folder {
	h.t.Helper()
	f, err := folder.At(h.db(), id)
	require.NoError(h.t, err)
	return f
}

// over reports whether nothing is left to do for a session.
func (h *house) over(id string) bool {
	s, err := h.folder(id).Read()
	return err == nil && s.Host == nil && s.TerminalReport.State != "" && h.folder(id).Holder() == 0
}

// await returns the guild's view of a session that is over.
func (h *house) await(ctx context.Context, id string) guild.Session {
	h.t.Helper()
	h.until(ctx, "session "+id+" is over", func() bool { return h.over(id) })
	return h.known(id)
}

func (h *house) known(id string) guild.Session {
	h.t.Helper()
	all, err := h.guild.Sessions()
	require.NoError(h.t, err)
	return all[id]
}

func (h *house) until(ctx context.Context, what string, so func() bool) {
	h.t.Helper()
	until(ctx, h.t, what, so, func() string { return strings.Join(h.processes(), "\n") })
}

// reported is a member of the terminal report that the guild applied.
func reported(s guild.Session, name string) any {
	var v any
	_ = json.Unmarshal(s.Report[name], &v) // what is not there is nil
	return v
}

// said is a message of a transcript.
type said struct {
	Type    string
	Session string `json:"session_id"`
	Message struct {
		Content json.RawMessage
	}
}

type saidBlock struct {
	Type, Text, Name string
	Content          json.RawMessage
}

func (s said) blocks() (all []saidBlock) {
	_ = json.Unmarshal(s.Message.Content, &all) // a text of the client's own has none
	return all
}

// transcript is the session's row in the guild's table, as it is and parsed.
func (h *house) transcript(id string) (raw json.RawMessage, messages []said) {
	h.t.Helper()
	if _, err := os.Stat(h.db()); errors.Is(err, fs.ErrNotExist) {
		return json.RawMessage("[]"), nil // nothing was said
	}
	db := h.open(h.db())
	var content string
	err := db.QueryRow(`SELECT content FROM books_animator_transcripts WHERE id = ?`, id).Scan(&content)
	// Nothing was said, or the host of the first session was killed before it made the table.
	if errors.Is(err, sql.ErrNoRows) || err != nil && strings.Contains(err.Error(), "no such table") {
		return json.RawMessage("[]"), nil
	}
	require.NoError(h.t, err)
	var row struct {
		ID       string
		Messages json.RawMessage
	}
	require.NoError(h.t, json.Unmarshal([]byte(content), &row))
	assert.Equal(h.t, id, row.ID)
	require.NoError(h.t, json.Unmarshal(row.Messages, &messages))
	return row.Messages, messages
}

// stored are the messages of the host's own database, which have to be numbered from 1
// without a gap.
func (h *house) stored(id string) (types []string, contents []json.RawMessage) {
	h.t.Helper()
	rows, err := h.open(h.own()).Query(`SELECT n, type, content || coalesce((SELECT group_concat(p.content, '' ORDER BY piece)
	FROM pieces AS p WHERE p.session = messages.session AND p.n = messages.n), '') FROM messages WHERE session = ? ORDER BY n`, id)
	require.NoError(h.t, err)
	defer rows.Close()
	for want := int64(1); rows.Next(); want++ {
		var n int64
		var kind, content string
		require.NoError(h.t, rows.Scan(&n, &kind, &content))
		require.Equal(h.t, want, n)
		types, contents = append(types, kind), append(contents, json.RawMessage(content))
	}
	require.NoError(h.t, rows.Err())
	return types, contents
}

// own is the host's own database.
func (h *house) own() string { return h.path("guild/heartbeat-host/host.db") }

func (h *house) open(path string) *sql.DB {
	h.t.Helper()
	db, err := sql.Open("sqlite", "file:"+path+"?mode=ro&_pragma=busy_timeout(600000)")
	require.NoError(h.t, err)
	h.t.Cleanup(func() { _ = db.Close() }) // it was only read
	return db
}

// agrees checks that table, messages and report have the same transcript, and returns
// what the model said and what tools answered, in order.
func (h *house) agrees(s guild.Session) (texts, results []string) {
	h.t.Helper()
	raw, messages := h.transcript(s.ID)
	sum := sha256.Sum256(raw)
	assert.Equal(h.t, hex.EncodeToString(sum[:]), s.Transcript, "the report's transcript is another than the database's")
	assert.Equal(h.t, len(messages), s.Messages)
	types, contents := h.stored(s.ID)
	var talk []string
	for i, kind := range types {
		if kind == "assistant" || kind == "user" {
			talk = append(talk, string(contents[i]))
		}
	}
	assert.JSONEq(h.t, "["+strings.Join(talk, ",")+"]", string(raw))
	assert.Equal(h.t, int64(len(types)), h.state(s.ID).Messages)
	for _, m := range messages {
		for _, b := range m.blocks() {
			switch {
			case m.Type == "assistant" && b.Type == "text":
				texts = append(texts, b.Text)
			case b.Type == "tool_result":
				results = append(results, flatten(b.Content))
			}
		}
	}
	return texts, results
}

func flatten(content json.RawMessage) string {
	var text string
	if json.Unmarshal(content, &text) == nil {
		return text
	}
	var blocks []saidBlock
	_ = json.Unmarshal(content, &blocks)
	for _, b := range blocks {
		text += b.Text
	}
	return text
}

// modelGot are the tool results that the model was sent, in order.
func (h *house) modelGot() (results []string) {
	for _, r := range h.Model.MainRequests() {
		results = append(results, r.ToolResults...)
	}
	return results
}

// isClean checks that a session left no process, no temporary file and no lock.
func (h *house) isClean(ids ...string) {
	h.t.Helper()
	ctx := within(h.t)
	var left []string
	for {
		if left = h.processes(); len(left) == 0 {
			break
		}
		if ctx.Err() != nil {
			break
		}
		time.Sleep(poll)
	}
	assert.Empty(h.t, left, "processes are left")
	for _, id := range ids {
		names, err := filepath.Glob(filepath.Join(h.folder(id).Dir(), "*"))
		require.NoError(h.t, err)
		for i := range names {
			names[i] = filepath.Base(names[i])
		}
		allowed := []string{"inbox", "lock", "state.json"}
		assert.Empty(h.t, slices.DeleteFunc(names, func(n string) bool { return slices.Contains(allowed, n) }), "files of session %s are left", id)
		hidden, err := filepath.Glob(filepath.Join(h.folder(id).Dir(), ".*"))
		require.NoError(h.t, err)
		assert.Empty(h.t, hidden)
	}
	left, err := filepath.Glob(h.path("tmp/nsg-*"))
	require.NoError(h.t, err)
	assert.Empty(h.t, left, "the folder of the system prompt is left")
}

// processes are those of the client's home but the guild, which is this test's own.
func (h *house) processes() (left []string) {
	for _, pid := range script.Marked("HOME=" + h.Home) {
		line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		left = append(left, fmt.Sprintf("%d %s", pid, bytes.ReplaceAll(line, []byte{0}, []byte(" "))))
	}
	return left
}

// letters are the reports that wait, and the files of them.
func (h *house) letters() []string {
	h.t.Helper()
	all, err := filepath.Glob(h.path("guild/dlq/*.json"))
	require.NoError(h.t, err)
	db := h.open(h.own())
	defer db.Close() // it was only read
	rows, err := db.Query(`SELECT kind || ' of ' || session FROM reports WHERE state <> 'sent'`)
	require.NoError(h.t, err)
	defer rows.Close()
	for rows.Next() {
		var one string
		require.NoError(h.t, rows.Scan(&one))
		all = append(all, one)
	}
	require.NoError(h.t, rows.Err())
	return all
}
