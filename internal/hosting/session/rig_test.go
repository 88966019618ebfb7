package session_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/hook"
	"heartbeat/internal/hosting/attach"
	"heartbeat/internal/hosting/config"
	"heartbeat/internal/hosting/folder"
	"heartbeat/internal/hosting/session"
	"heartbeat/internal/hosting/store"
	"heartbeat/internal/machine/guardian"
	"heartbeat/internal/notify"
	"heartbeat/internal/testing/agent"
	"heartbeat/internal/testing/crash"
	"heartbeat/internal/testing/guild"
	"heartbeat/internal/testing/script"
)

// roleVariable makes this program one of those that a session consists of.
const roleVariable = "HEARTBEAT_TEST_ROLE"

// killVariable names the step at which a host kills itself, and optionally which visit
// to it: "message 2".
const killVariable = "HEARTBEAT_TEST_KILL_AT_STEP"

// cancelVariable names the step at which a host gets SIGTERM, and its state file, which
// shows when it has noticed.
const cancelVariable = "HEARTBEAT_TEST_CANCEL_AT_STEP"

// peakVariable names the file that a host writes the most memory it had to, at its end.
const peakVariable = "HEARTBEAT_TEST_PEAK"

// sendVariable names the step at which an entry is sent, and the session's folder.
const sendVariable = "HEARTBEAT_TEST_SEND_AT_STEP"

func TestMain(m *testing.M) {
	guild.RunIfAsked()
	guardian.Serve()
	notify.Serve()
	if len(os.Args) > 2 && os.Args[1] == session.FinishCommand {
		heedSteps()
		if err := session.FinishAll(os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	role := os.Getenv(roleVariable)
	_ = os.Unsetenv(roleVariable)
	switch role {
	case "host":
		os.Exit(crash.Run(hostIt))
	case "claude":
		if slices.Contains(os.Args, "--print") {
			os.Exit(agent.InPrint(os.Args[1:], act))
		}
		os.Exit(agent.InTerminal(os.Args[1:], func(text string) string {
			return act(agent.Printed{Text: text, Print: func(string) {}})
		}))
	case "hook":
		hook.Main()
	}
	os.Exit(script.Run(m))
}

// hostIt hosts the session whose options are on stdin.
func hostIt() int {
	heedSteps()
	heedSpace()
	var o session.Options
	if err := json.NewDecoder(os.Stdin).Decode(&o); err != nil {
		panic(err)
	}
	o.Started = func(up session.Up) { _ = json.NewEncoder(os.Stdout).Encode(up) }
	outcome, err := session.Run(o)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 78
	}
	_ = json.NewEncoder(os.Stdout).Encode(outcome)
	return 0
}

// spaceVariable names a file that says how many pages the host's database may have. While
// it is missing there is room for any number.
const spaceVariable = "HEARTBEAT_TEST_PAGES"

func heedSpace() {
	path := os.Getenv(spaceVariable)
	_ = os.Unsetenv(spaceVariable)
	if path == "" {
		return
	}
	store.TestOnlyPages = func() int {
		pages := 1 << 30
		text, _ := os.ReadFile(path)
		_, _ = fmt.Sscan(string(text), &pages)
		return pages
	}
}

// store is the host's database beside the session's.
func (r *rig) store() *store.Store {
	db := store.In(folder.Root(r.Config.DBPath), "")
	r.t.Cleanup(func() { require.NoError(r.t, db.Close()) })
	return db
}

// fillVariable names the step at which the disk of a folder fills up, how many KiB are
// left then, and the folder.
const fillVariable = "HEARTBEAT_TEST_FILL"

// fill takes all room of a disk but so many KiB, at the step that the environment names.
func fill(step string) {
	at, left, dir := "", 0, ""
	if n, _ := fmt.Sscanf(os.Getenv(fillVariable), "%s %d %s", &at, &left, &dir); n != 3 || at != step {
		return
	}
	_ = os.Unsetenv(fillVariable)
	ballast, _ := os.Create(filepath.Join(dir, "ballast"))
	for _, size := range []int{1 << 20, 4 << 10} {
		for err := error(nil); err == nil; {
			_, err = ballast.Write(make([]byte, size))
		}
	}
	info, _ := ballast.Stat()
	_ = ballast.Truncate(info.Size() - int64(left)<<10)
	_ = ballast.Close()
}

// sendLate has the process send an entry to its own session, once, at the step that its
// environment names, and writes down what came of it.
func sendLate(step string) {
	at, dir, _ := strings.Cut(os.Getenv(sendVariable), " ")
	if step != at {
		return
	}
	_ = os.Unsetenv(sendVariable)
	_, err := attach.Host{Folder: dir}.Send(context.Background(), "late", "late")
	_ = os.WriteFile(filepath.Join(dir, "sent"), fmt.Append(nil, err), 0o600)
}

// heedSteps has this process kill or cancel itself, or send, at the step that its
// environment names.
func heedSteps() {
	kill := os.Getenv(killVariable)
	cancel, db, _ := strings.Cut(os.Getenv(cancelVariable), " ")
	_ = os.Unsetenv(killVariable)
	_ = os.Unsetenv(cancelVariable)
	name, left := kill, 1
	_, _ = fmt.Sscanf(kill, "%s %d", &name, &left)
	peak := os.Getenv(peakVariable)
	_ = os.Unsetenv(peakVariable)
	session.TestOnlyStep = func(step string) {
		if step == "over" && peak != "" {
			text, _ := os.ReadFile("/proc/self/status")
			_ = os.WriteFile(peak, text, 0o600)
		}
		sendLate(step)
		fill(step)
		switch {
		case step == cancel:
			_ = syscall.Kill(os.Getpid(), syscall.SIGTERM)
			for noted := false; !noted; time.Sleep(time.Millisecond) {
				f, _ := folder.At(db, "ses-1")
				s, err := f.Read()
				noted = err == nil && s.Cancel != nil
			}
		case step == name:
			if left--; left == 0 {
				_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
				script.Forever()
			}
		}
	}
}

// act is what the client does in a turn: the words of the text say it.
func act(t agent.Printed) string {
	if _, rest, is := strings.Cut(t.Text, "It is in the file "); is {
		file, _, _ := strings.Cut(rest, ":")
		openText(t, file)
		return "done"
	}
	for _, word := range strings.Fields(t.Text) {
		name, value, _ := strings.Cut(word, ":")
		switch name {
		case "exit":
			var code int
			_, _ = fmt.Sscan(value, &code)
			os.Exit(code)
		case "die":
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		case "wait":
			_, _ = os.ReadFile(value)
		case "deaf":
			signal.Ignore(syscall.SIGTERM)
		case "hang":
			script.Forever()
		case "complain":
			fmt.Fprintln(os.Stderr, value)
		case "print":
			t.Print(value)
		case "child": // which outlives the client, holds its output, and does not listen
			cmd := exec.Command("setsid", "sh", "-c", `trap "" TERM; while :; do sleep 1000; done`)
			cmd.Stdout = os.Stdout
			_ = cmd.Start()
		case "limit":
			t.Print(`{"type":"assistant","error":"rate_limit","session_id":"s","message":{"model":"<synthetic>","content":[{"type":"text","text":"You've hit your session limit"}]}}`)
			os.Exit(1)
		case "list":
			useTools(func(context.Context, *mcp.ClientSession) {})
		case "large": // a line of so many megabytes, of a type
			kind, size, _ := strings.Cut(value, ",")
			var mb int
			_, _ = fmt.Sscan(size, &mb)
			head, tail := `{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t1","content":"`, `"}]}}`
			if kind == "assistant" {
				head, tail = `{"type":"assistant","message":{"id":"m1","model":"stand-in","content":[{"type":"text","text":"`, `"}]}}`
			}
			t.Print(head + strings.Repeat("x", mb<<20) + tail)
		case "call": // a tool of the guild, some times
			tool, times, _ := strings.Cut(value, ",")
			useTools(func(ctx context.Context, s *mcp.ClientSession) {
				for n := range 1 + strings.Count(times, "again") {
					_, _ = s.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: map[string]any{"n": n}}) // the proxy counts
				}
			})
		case "result": // as at the end, but the client does not end
			t.Print(`{"type":"result","subtype":"success","is_error":false,"num_turns":1,"session_id":"s"}`)
		}
	}
	return "done: " + t.Text
}

// readsVariable says what the client does with a text that is in a file: nothing, or the
// input of the tool that reads it, with FILE for the path, and whether that fails.
const readsVariable = "HEARTBEAT_TEST_READS"

func openText(t agent.Printed, file string) {
	input, failed := strings.CutSuffix(os.Getenv(readsVariable), " fails")
	if input == "" {
		return
	}
	input = strings.ReplaceAll(input, "FILE", file)
	t.Print(`{"type":"assistant","message":{"model":"stand-in","content":[{"type":"tool_use","id":"t1","name":"Read","input":` + input + `}]}}`)
	t.Print(fmt.Sprintf(`{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t1","is_error":%v,"content":""}]}}`, failed))
}

// useTools connects to the guild's tools, as the client does, and lists them.
func useTools(use func(context.Context, *mcp.ClientSession)) {
	var c struct {
		Servers map[string]struct {
			URL     string
			Headers map[string]string
		} `json:"mcpServers"`
	}
	text, err := os.ReadFile(os.Args[slices.Index(os.Args, "--mcp-config")+1])
	if err == nil {
		err = json.Unmarshal(text, &c)
	}
	if err != nil {
		panic(err)
	}
	server := c.Servers["nexus-guild"]
	ctx := context.Background()
	session, err := mcp.NewClient(&mcp.Implementation{Name: "claude", Version: "1"}, nil).
		Connect(ctx, &mcp.StreamableClientTransport{Endpoint: server.URL, HTTPClient: &http.Client{Transport: headers(server.Headers)}}, nil)
	if err == nil {
		_, err = session.ListTools(ctx, nil)
	}
	if err != nil {
		panic(err)
	}
	use(ctx, session)
	_ = session.Close() // the process ends soon
}

// headers are added to each request.
type headers map[string]string

func (h headers) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	for name, value := range h {
		r.Header.Set(name, value)
	}
	return http.DefaultTransport.RoundTrip(r)
}

// rig is a guild, a client, a hook, and a folder for one session.
type rig struct {
	t      *testing.T
	dir    string
	guild  *guild.Guild
	server *httptest.Server
	session.Options
}

func newRig(t *testing.T, prompt string) *rig {
	t.Helper()
	r := &rig{t: t, dir: t.TempDir(), Options: session.Defaults()}
	var err error
	r.guild, err = guild.Open(guild.Options{Cancelled: true})
	require.NoError(t, err)
	r.server = httptest.NewServer(r.guild)
	t.Cleanup(func() {
		require.NoError(t, r.guild.Close())
		r.server.Close()
	})
	for _, dir := range []string{"home", "cwd", "transcripts", "temporary"} {
		require.NoError(t, os.Mkdir(r.path(dir), 0o700))
	}
	r.Claude, r.Hook, r.Again = r.program("claude"), r.program("hook"), 100*time.Millisecond
	r.Config = &config.Config{
		SessionID: "ses-1", GuildToolURL: r.server.URL, DBPath: r.path("nexus.db"), LogDir: r.path("logs"), Cwd: r.path("cwd"),
		Prompt: prompt, StartedAt: "2026-11-22T10:00:00Z", Provider: "claude-code",
	}
	r.guild.Expect("ses-1")
	t.Cleanup(r.alone) // before its folder is removed, and its guild ends
	return r
}

func (r *rig) path(name string) string { return filepath.Join(r.dir, name) }

// program makes a command that is this program in a role.
func (r *rig) program(role string) string {
	self, err := os.Executable()
	require.NoError(r.t, err)
	path := r.path(role)
	script := fmt.Sprintf("#!/bin/sh\n%s=%s exec '%s' \"$@\"\n", roleVariable, role, self)
	require.NoError(r.t, os.WriteFile(path, []byte(script), 0o700))
	return path
}

func (r *rig) folder() folder.Folder {
	f, err := folder.At(r.Config.DBPath, r.Config.SessionID)
	require.NoError(r.t, err)
	return f
}

func (r *rig) state() *folder.State {
	s, err := r.folder().Read()
	require.NoError(r.t, err)
	return s
}

// command is the host of the session, not yet started.
func (r *rig) command() *exec.Cmd {
	text, err := json.Marshal(r.Options)
	require.NoError(r.t, err)
	self, err := os.Executable()
	require.NoError(r.t, err)
	cmd := exec.Command(self)
	cmd.Args[0] = "heartbeat-host"
	cmd.Env = []string{
		roleVariable + "=host", "HOME=" + r.path("home"), "TMPDIR=" + r.path("temporary"), "PATH=/usr/bin:/bin", "XDG_STATE_HOME=" + r.path("state"),
		agent.TranscriptsVariable + "=" + r.path("transcripts"), "GORACE=atexit_sleep_ms=0",
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Stdin, cmd.Stderr = strings.NewReader(string(text)), os.Stderr
	return cmd
}

// run hosts the session until its end.
func (r *rig) run() (up session.Up, o session.Outcome) {
	r.t.Helper()
	out, err := r.command().Output()
	require.NoError(r.t, err)
	d := json.NewDecoder(strings.NewReader(string(out)))
	require.NoError(r.t, d.Decode(&up))
	require.NoError(r.t, d.Decode(&o))
	return up, o
}

// report is the terminal report that the guild applied.
func (r *rig) report() map[string]any {
	s, _ := r.guild.Session(r.Config.SessionID)
	all := map[string]any{}
	for name, raw := range s.Report {
		var v any
		require.NoError(r.t, json.Unmarshal(raw, &v))
		all[name] = v
	}
	return all
}

// until waits for something that another process does.
func (r *rig) until(what string, is func() bool) {
	r.t.Helper()
	for end := time.Now().Add(5 * time.Minute); !is(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			log, _ := os.ReadFile(r.path("logs/ses-1.log"))
			r.t.Fatalf("waited in vain for: %s\n%s", what, log)
		}
	}
}
