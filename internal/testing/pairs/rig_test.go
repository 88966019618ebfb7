package pairs

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"heartbeat/inbox"
	"heartbeat/internal/testing/guild"
	"heartbeat/internal/testing/script"
)

// rig is an inbox with three entries.
type rig struct {
	t      *testing.T
	dir    string
	policy string
	owner  int    // the client that has the first entry
	id     string // its session
	hosts  []*process
	all    []*process // everything that it has started
	guild  *guild.Guild
	url    string
}

var entries = []string{"[e1]", "[e2]", "[e3]"}

func newRig(t *testing.T, policy string) *rig {
	t.Helper()
	r := &rig{t: t, dir: t.TempDir(), policy: policy}
	for _, dir := range []string{"q", "home", "cwd"} {
		require.NoError(t, os.Mkdir(r.path(dir), 0o700))
	}
	var text strings.Builder
	for _, tag := range entries {
		fmt.Fprintf(&text, "{\"id\":%q,\"prompt\":\"do %s\"}\n", strings.Trim(tag, "[]"), tag)
	}
	require.NoError(t, os.WriteFile(r.inbox(), []byte(text.String()), 0o600))
	self, err := os.Executable()
	require.NoError(t, err)
	claude := fmt.Sprintf("#!/bin/sh\n%s=claude %s='%s' exec '%s' \"$@\"\n", roleVariable, dirVariable, r.dir, self)
	require.NoError(t, os.WriteFile(r.path("claude"), []byte(claude), 0o700))
	r.guild, err = guild.Open(guild.Options{Cancelled: true})
	require.NoError(t, err)
	server := httptest.NewServer(r.guild)
	r.url = server.URL
	t.Cleanup(func() {
		script.Sweep(t, dirVariable+"="+r.dir) // whatever the rig has started has it
		require.NoError(t, r.guild.Close())
		server.Close()
	})
	return r
}

func (r *rig) path(name string) string { return filepath.Join(r.dir, name) }

func (r *rig) inbox() string { return r.path("q/inbox.jsonl") }

// process is an actor that acts, or has acted.
type process struct {
	*exec.Cmd
	stdin io.Closer
	said  string // the file that has what it prints
	done  chan struct{}
}

// says is what it has printed so far.
func (p *process) says() string { return strings.Join(lines(p.said), "\n") }

// command starts one of the shipped commands, or this program. Its stdin ends when its
// status is asked for.
func (r *rig) command(stdin string, env []string, name string, args ...string) *process {
	r.t.Helper()
	said, err := os.CreateTemp(r.dir, "said-")
	require.NoError(r.t, err)
	defer said.Close()
	p := &process{Cmd: exec.Command(name, args...), said: said.Name(), done: make(chan struct{})}
	p.Env = append(env, "PATH="+commands+":/usr/bin:/bin", "HOME="+r.path("home"), "XDG_STATE_HOME="+r.path("home"), "TMPDIR="+r.path("home"), "GORACE=atexit_sleep_ms=0", dirVariable+"="+r.dir)
	p.Dir = r.path("cwd")
	p.Stdout, p.Stderr = said, said
	p.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	in, err := p.StdinPipe()
	require.NoError(r.t, err)
	p.stdin = in
	require.NoError(r.t, p.Start())
	r.all = append(r.all, p)
	_, err = io.WriteString(in, stdin)
	require.NoError(r.t, err)
	go func() {
		_ = p.Wait() // its state says how it ended
		close(p.done)
	}()
	return p
}

// verb starts a verb of heartbeat on the inbox.
func (r *rig) verb(name string, args ...string) *process {
	r.t.Helper()
	return r.command("", nil, filepath.Join(commands, "heartbeat"), append([]string{name, "--inbox", r.inbox()}, args...)...)
}

// session starts a session whose settings a person has wired.
func (r *rig) session(kind, id string) *process {
	r.t.Helper()
	self, err := os.Executable()
	require.NoError(r.t, err)
	args := []string{kind, id, filepath.Join(commands, "heartbeat-stop"), "--inbox", r.inbox(), "--on-orphan", r.policy}
	switch kind {
	case rewake:
		args = append(args, "--rewake")
	case persisting:
		args = append(args, "--mode", "persist", "--idle-interval", "1h")
	}
	return r.command("", []string{roleVariable + "=session"}, self, args...)
}

// hosted starts a host whose session works on the inbox.
func (r *rig) hosted() *process {
	r.t.Helper()
	id := fmt.Sprintf("ses-%d", len(r.hosts)+1)
	r.guild.Expect(id)
	text, err := json.Marshal(map[string]any{
		"sessionId": id, "guildToolUrl": r.url, "dbPath": r.path("nexus.db"), "logDir": r.path("logs"), "claudeArgs": []string{}, "cwd": r.path("cwd"),
		"env": map[string]string{}, "prompt": "", "tools": []any{}, "startedAt": "2026-11-22T10:00:00Z", "provider": "claude-code",
	})
	require.NoError(r.t, err)
	p := r.command(string(text), nil, filepath.Join(commands, "heartbeat-host"), "start", "--foreground", "--claude", r.path("claude"), "--inbox", r.inbox(), "--on-orphan", r.policy)
	require.NoError(r.t, p.stdin.Close())
	r.hosts = append(r.hosts, p)
	return p
}

// status is how a process has ended, once it has.
func (r *rig) status(p *process) int {
	r.t.Helper()
	_ = p.stdin.Close() // it may be closed already
	select {
	case <-p.done:
	case <-time.After(script.Patience):
		r.fail(strings.Join(p.Args, " ") + " to end")
	}
	return p.ProcessState.ExitCode()
}

// until waits until something is so.
func (r *rig) until(what string, so func() bool) {
	r.t.Helper()
	for end := time.Now().Add(script.Patience); !so(); time.Sleep(poll) {
		if time.Now().After(end) {
			r.fail(what)
		}
	}
}

func (r *rig) fail(what string) {
	r.t.Helper()
	r.t.Fatalf("waited in vain for %s\n%s", what, r.state())
}

// state is what the files and the processes say.
func (r *rig) state() string {
	var text strings.Builder
	for _, name := range []string{"asked", "q/.in-flight", "q/.results.jsonl", "q/.dead-letter.jsonl", "q/.events.jsonl"} {
		fmt.Fprintf(&text, "%s:\n%s\n", name, strings.Join(lines(r.path(name)), "\n"))
	}
	for _, p := range r.all {
		fmt.Fprintf(&text, "%s, process %d:\n%s\n", strings.Join(p.Args, " "), p.Process.Pid, p.says())
	}
	return text.String()
}

// fate is what became of an entry.
type fate struct {
	Reply, Reason, Session string
	Attempt                int
}

// fates are the fates of each entry so far.
func (r *rig) fates() map[string][]fate {
	r.t.Helper()
	all := map[string][]fate{}
	for _, name := range []string{"q/.results.jsonl", "q/.dead-letter.jsonl"} {
		for _, line := range lines(r.path(name)) {
			var l struct {
				ID, Reply, Reason string
				SessionID         string `json:"session_id"`
				Attempt, Attempts int
			}
			require.NoError(r.t, json.Unmarshal([]byte(line), &l), line)
			tag := "[" + l.ID + "]"
			all[tag] = append(all[tag], fate{l.Reply, l.Reason, l.SessionID, l.Attempt + l.Attempts})
		}
	}
	return all
}

// settled reports whether an entry has its fate, and is in flight no more.
func (r *rig) settled(tag string) bool {
	return len(r.fates()[tag]) > 0 && r.inFlight() != tag
}

// inFlight is the entry in flight, "" for none.
func (r *rig) inFlight() string {
	d := r.delivery()
	if d == nil {
		return ""
	}
	return "[" + d.ID() + "]"
}

func (r *rig) delivery() *inbox.Delivery {
	v := r.view()
	defer func() { require.NoError(r.t, v.Close()) }()
	return v.InFlight()
}

func (r *rig) view() *inbox.View {
	box, err := inbox.Open(r.inbox(), inbox.Options{})
	require.NoError(r.t, err)
	v, err := box.View()
	require.NoError(r.t, err)
	return v
}

// asked are the clients that were asked about an entry.
func (r *rig) asked(tag string) (pids []int) {
	for _, line := range lines(r.path("asked")) {
		of, pid, _ := strings.Cut(line, " ")
		if n, err := strconv.Atoi(pid); of == tag && err == nil {
			pids = append(pids, n)
		}
	}
	return pids
}

// waits reports whether the last Stop hook of a session waits for the inbox to change.
func (r *rig) waits(session *process) bool {
	all := lines(r.path("stop-" + strconv.Itoa(session.Process.Pid)))
	if len(all) == 0 {
		return false
	}
	pid, err := strconv.Atoi(all[len(all)-1])
	require.NoError(r.t, err)
	return script.Watches(pid)
}

// waiter reports whether a session that has no entry is to be woken with the next one.
func (r *rig) waiter() bool {
	v := r.view()
	defer func() { require.NoError(r.t, v.Close()) }()
	w, err := v.Waiter()
	return err == nil && w != nil && w.SessionID != r.id
}

// told is a file that a process made, or is to see.
func (r *rig) told(name string) bool {
	_, err := os.Stat(r.path(name))
	return err == nil
}
