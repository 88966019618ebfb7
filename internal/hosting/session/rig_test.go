package session_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"heartbeat/internal/hook"
	"heartbeat/internal/host/guardian"
	"heartbeat/internal/hosting/attach"
	"heartbeat/internal/hosting/config"
	"heartbeat/internal/hosting/folder"
	"heartbeat/internal/hosting/session"
	"heartbeat/internal/notify"
	"heartbeat/internal/testing/agent"
	"heartbeat/internal/testing/crash"
	"heartbeat/internal/testing/guild"
)

// roleVariable makes this program one of those that a session consists of.
const roleVariable = "HEARTBEAT_TEST_ROLE"

// killVariable names the step at which a host kills itself, and optionally which visit
// to it: "message 2".
const killVariable = "HEARTBEAT_TEST_KILL_AT_STEP"

// cancelVariable names the step at which a host gets SIGTERM, and its state file, which
// shows when it has noticed.
const cancelVariable = "HEARTBEAT_TEST_CANCEL_AT_STEP"

// sendVariable names the step at which an entry is sent, and the session's folder.
const sendVariable = "HEARTBEAT_TEST_SEND_AT_STEP"

func TestMain(m *testing.M) {
	guild.RunIfAsked()
	guardian.Serve()
	session.Serve()
	notify.Serve()
	if len(os.Args) == 3 && os.Args[1] == session.FinishCommand {
		heedSteps()
		os.Exit(finish(os.Args[2]))
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
	os.Exit(m.Run())
}

func finish(dir string) int {
	_, err := session.Finish(context.Background(), dir)
	if err != nil && !errors.Is(err, session.ErrHosted) && !errors.Is(err, session.ErrFinished) {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// hostIt hosts the session whose options are on stdin.
func hostIt() int {
	heedSteps()
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
	cancel, statePath, _ := strings.Cut(os.Getenv(cancelVariable), " ")
	_ = os.Unsetenv(killVariable)
	_ = os.Unsetenv(cancelVariable)
	name, left := kill, 1
	_, _ = fmt.Sscanf(kill, "%s %d", &name, &left)
	session.TestOnlyStep = func(step string) {
		sendLate(step)
		switch {
		case step == cancel:
			_ = syscall.Kill(os.Getpid(), syscall.SIGTERM)
			for noted := false; !noted; time.Sleep(time.Millisecond) {
				text, _ := os.ReadFile(statePath)
				noted = strings.Contains(string(text), `"cancel"`)
			}
		case step == name:
			if left--; left == 0 {
				_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
				select {}
			}
		}
	}
}

// act is what the client does in a turn: the words of the text say it.
func act(t agent.Printed) string {
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
		case "hang":
			select {}
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
		case "result": // as at the end, but the client does not end
			t.Print(`{"type":"result","subtype":"success","is_error":false,"num_turns":1,"session_id":"s"}`)
		}
	}
	return "done: " + t.Text
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
	r := &rig{t: t, dir: t.TempDir()}
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
	r.Claude, r.Hook = r.program("claude"), r.program("hook")
	r.Config = &config.Config{
		SessionID: "ses-1", GuildToolURL: r.server.URL, DBPath: r.path("nexus.db"), LogDir: r.path("logs"), Cwd: r.path("cwd"),
		Prompt: prompt, StartedAt: "2026-11-22T10:00:00Z", Provider: "claude-code",
	}
	r.guild.Expect("ses-1")
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
	for end := time.Now().Add(time.Minute); !is(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			log, _ := os.ReadFile(r.path("logs/ses-1.log"))
			r.t.Fatalf("not in a minute: %s\n%s", what, log)
		}
	}
}
