package stuck

import (
	"encoding/json"
	"fmt"
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

	"heartbeat/internal/testing/guild"
	"heartbeat/internal/testing/script"
)

// wiring is who sees to the sessions of an inbox.
type wiring string

const (
	hook     wiring = "hook"     // a person starts them, and their settings have the hook
	launcher wiring = "launcher" // one works on the inbox
	host     wiring = "host"
	timer    wiring = "timer" // a launcher that is started now and then, and has ended
)

// rig is an inbox under one wiring.
type rig struct {
	t      *testing.T
	dir    string
	wiring wiring
	self   string // this program
	uid    int    // whose everything is, 0 for our own
	hosts  int
	lacks  string // the place that does not tell what it should
	guild  *guild.Guild
	url    string
}

func newRig(t *testing.T, w wiring) *rig {
	t.Helper()
	// Not below the test's own folder, which only its user enters.
	dir, err := os.MkdirTemp("", "heartbeat-stuck-")
	require.NoError(t, err)
	require.NoError(t, os.Chmod(dir, 0o755))
	r := &rig{t: t, dir: dir, wiring: w}
	for _, name := range []string{"q", "home", "cwd", "bin", "transcripts"} {
		require.NoError(t, os.Mkdir(r.path(name), 0o700))
	}
	self, err := os.Executable()
	require.NoError(t, err)
	r.self = r.path("bin/self")       // where every user may run it
	if os.Link(self, r.self) != nil { // another file system
		raw, err := os.ReadFile(self)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(r.self, raw, 0o755))
	}
	claude := fmt.Sprintf("#!/bin/sh\n. '%s'\n%s=claude exec '%s' \"$@\"\n", r.path("env"), roleVariable, r.self)
	r.write("env", "")
	require.NoError(t, os.WriteFile(r.path("bin/claude"), []byte(claude), 0o700))
	g, err := guild.Open(guild.Options{Cancelled: true})
	require.NoError(t, err)
	server := httptest.NewServer(g)
	r.guild, r.url = g, server.URL
	t.Cleanup(func() {
		r.write("quit", "")
		script.Sweep(t, dirVariable+"="+r.dir) // whatever the rig has started has it
		require.NoError(t, g.Close())
		server.Close()
		require.NoError(t, os.RemoveAll(dir))
	})
	return r
}

func (r *rig) path(name string) string { return filepath.Join(r.dir, name) }

func (r *rig) inbox() string { return r.path("q/inbox.jsonl") }

func (r *rig) write(name, text string) {
	r.t.Helper()
	require.NoError(r.t, os.WriteFile(r.path(name), []byte(text), 0o600))
}

// says has the model and the client do so from now on: see [act].
func (r *rig) says(what string) {
	r.t.Helper()
	r.write("act.new", what)
	require.NoError(r.t, os.Rename(r.path("act.new"), r.path("act")))
}

// adds appends entries, as any program does.
func (r *rig) adds(all ...string) {
	r.t.Helper()
	f, err := os.OpenFile(r.inbox(), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	require.NoError(r.t, err)
	for _, id := range all {
		_, err = fmt.Fprintf(f, "{\"id\":%q,\"prompt\":\"do [%s]\"}\n", id, id)
		require.NoError(r.t, err)
	}
	require.NoError(r.t, f.Close())
}

// process is one that was started beside the test.
type process struct {
	*exec.Cmd
	said string // the file that has what it prints
	done chan struct{}
}

func (p *process) prints() string {
	text, _ := os.ReadFile(p.said)
	return string(text)
}

func (r *rig) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(name, args...)
	cmd.Env = []string{
		"PATH=" + r.path("bin") + ":" + commands + ":/usr/bin:/bin", "HOME=" + r.path("home"), "XDG_STATE_HOME=" + r.path("home"), "TMPDIR=" + r.path("home"),
		dirVariable + "=" + r.dir, "HEARTBEAT_TEST_TRANSCRIPTS=" + r.path("transcripts"),
	}
	cmd.Dir = r.path("cwd")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if r.uid != 0 {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(r.uid), Gid: uint32(r.uid)}
	}
	return cmd
}

// beside starts a command beside the test.
func (r *rig) beside(cmd *exec.Cmd) *process {
	r.t.Helper()
	out, err := os.CreateTemp(r.dir, "said-")
	require.NoError(r.t, err)
	defer out.Close()
	p := &process{Cmd: cmd, said: out.Name(), done: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = out, out
	require.NoError(r.t, cmd.Start())
	go func() {
		_ = p.Wait() // its state says how it ended
		close(p.done)
	}()
	return p
}

// start starts who sees to the sessions. Of a timer it returns what has ended.
func (r *rig) start(flags ...string) *process {
	r.t.Helper()
	switch r.wiring {
	case hook:
		return r.session(flags...)
	case host:
		return r.hosted(flags...)
	}
	args := append([]string{"--inbox", r.inbox(), "--output", "log", "--start-timeout", "1m", "--report", r.path("report")}, flags...)
	p := r.beside(r.command(filepath.Join(commands, "heartbeat-launch"), append(args, "--", "claude", "Say ready.")...))
	if r.wiring == timer {
		r.ends(p)
	}
	return p
}

func (r *rig) ends(p *process) {
	r.t.Helper()
	select {
	case <-p.done:
	case <-time.After(script.Patience):
		r.t.Fatalf("it does not end: %s\n%s", p.Args, p.prints())
	}
}

// kills kills a process that this rig has started.
func (r *rig) kills(p *process) {
	r.t.Helper()
	require.NoError(r.t, p.Process.Kill())
	r.ends(p)
}

func (r *rig) session(flags ...string) *process {
	r.t.Helper()
	cmd := r.command(r.self, append([]string{filepath.Join(commands, "heartbeat-stop"), "--inbox", r.inbox()}, flags...)...)
	cmd.Env = append(cmd.Env, roleVariable+"=session")
	return r.beside(cmd)
}

func (r *rig) hosted(flags ...string) *process {
	r.t.Helper()
	r.hosts++
	id := "ses-" + strconv.Itoa(r.hosts)
	r.guild.Expect(id)
	text, err := json.Marshal(map[string]any{
		"sessionId": id, "guildToolUrl": r.url, "dbPath": r.path("nexus.db"), "logDir": r.path("logs"), "claudeArgs": []string{},
		"cwd": r.path("cwd"), "env": map[string]string{}, "prompt": "", "tools": []any{}, "startedAt": "2026-11-22T10:00:00Z", "provider": "claude-code",
	})
	require.NoError(r.t, err)
	args := append([]string{"start", "--foreground", "--inbox", r.inbox()}, flags...)
	cmd := r.command(filepath.Join(commands, "heartbeat-host"), args...)
	cmd.Stdin = strings.NewReader(string(text))
	return r.beside(cmd)
}

// run runs a verb of heartbeat on the inbox, as who looks.
func (r *rig) run(stdin, verb string, args ...string) (string, error) {
	cmd := r.command(filepath.Join(commands, "heartbeat"), append([]string{verb, "--inbox", r.inbox()}, args...)...)
	cmd.Stdin = strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// does runs a verb that has to do what it is told.
func (r *rig) does(verb string, args ...string) {
	r.t.Helper()
	out, err := r.run("", verb, args...)
	require.NoError(r.t, err, "%s %q: %s", verb, args, out)
}

// until waits until something is so.
func (r *rig) until(what string, so func() bool) {
	r.t.Helper()
	for end := time.Now().Add(script.Patience); !so(); time.Sleep(poll) {
		if time.Now().After(end) {
			r.t.Fatalf("waited in vain for %s\n%s", what, r.state())
		}
	}
}

// asked waits until the model is asked about an entry, and returns the client's process.
func (r *rig) asked(id string) (pid int) {
	r.t.Helper()
	r.until("the model to be asked about "+id, func() bool {
		text, _ := os.ReadFile(r.path("asked"))
		for line := range strings.Lines(string(text)) {
			if tag, rest, _ := strings.Cut(strings.TrimSpace(line), " "); tag == "["+id+"]" {
				pid, _ = strconv.Atoi(rest)
			}
		}
		return pid != 0
	})
	return pid
}

// state is what the files and the processes said.
func (r *rig) state() string {
	var text strings.Builder
	status, _ := r.run("", "status")
	fmt.Fprintf(&text, "missing in: %s\nstatus:\n%s", r.lacks, status)
	names, _ := filepath.Glob(r.path("said-*"))
	names = append(names, r.path("q/.events.jsonl"), r.path("q/.dead-letter.jsonl"), r.path("q/.results.jsonl"), r.path("logs/ses-1.log"))
	for _, name := range names {
		if said, err := os.ReadFile(name); err == nil {
			fmt.Fprintf(&text, "%s:\n%.4000s\n", filepath.Base(name), said)
		}
	}
	return text.String()
}

// figures are those of status that the states are brought about by.
func (r *rig) figures() (f struct {
	Answered int
	Waiter   *struct {
		PID   int
		Since time.Time
	}
}) {
	out, _ := r.run("", "status", "--json")
	_ = json.Unmarshal([]byte(out), &f) // what is not there is not told
	return f
}

// hasAnswered waits until so many entries are answered.
func (r *rig) hasAnswered(n int) {
	r.t.Helper()
	r.until(fmt.Sprint(n, " answers"), func() bool { return r.figures().Answered >= n })
}

// sits waits until the session of a person is at its prompt.
func (r *rig) sits() {
	r.t.Helper()
	r.until("the session to be at its prompt", func() bool { return there(r.dir, "sits") })
}

// waiter is the process that waits to wake the session after its first turn: the one from
// before that leaves to it.
func (r *rig) waiter() (pid int) {
	r.t.Helper()
	r.until("a process that waits", func() bool {
		begun, err := os.Stat(r.path("begun"))
		w := r.figures().Waiter
		if err == nil && w != nil && w.Since.After(begun.ModTime()) && script.Watches(w.PID) {
			pid = w.PID
		}
		return pid != 0
	})
	return pid
}

// refreshes has the meters be written now, as the client does while nothing moves: it asks
// for its status line every few seconds.
func (r *rig) refreshes() {
	r.t.Helper()
	meters, err := filepath.Glob(r.path("q/.meter-*"))
	require.NoError(r.t, err)
	for _, name := range meters {
		require.NoError(r.t, os.Chtimes(name, time.Now(), time.Now()))
	}
}

// signals sends a signal that ends or stops a process, outside of a transaction of it.
func (r *rig) signals(pid int, then syscall.Signal) {
	r.t.Helper()
	r.until(fmt.Sprintf("process %d to heed %s", pid, then), func() bool {
		require.NoError(r.t, syscall.Kill(pid, then))
		if then == syscall.SIGKILL {
			return true
		}
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		require.NoError(r.t, err)
		if !strings.Contains(string(stat), ") T ") {
			return false
		}
		lock, err := os.Open(r.path("q/.inbox-lock"))
		require.NoError(r.t, err)
		defer lock.Close() // which gives it back
		if syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil {
			return true
		}
		require.NoError(r.t, syscall.Kill(pid, syscall.SIGCONT))
		return false
	})
}

// plain has everything be a plain user's, and run as one.
func (r *rig) plain() {
	r.t.Helper()
	if os.Geteuid() != 0 {
		return
	}
	r.uid = 65534
	require.NoError(r.t, filepath.WalkDir(r.dir, func(path string, _ os.DirEntry, err error) error {
		if err == nil && path != r.self {
			err = os.Lchown(path, r.uid, r.uid)
		}
		return err
	}))
}
