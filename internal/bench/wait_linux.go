package main

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"heartbeat/internal/hosting/folder"
	"heartbeat/internal/testing/script"
)

func persist(r *rig, t *table) {
	l := r.lane("persist", 0)
	var waits sample
	for range r.n("waits") {
		text, took := l.wakes(0, "--mode", "persist", "--idle-interval", "60")
		l.delivered(text)
		waits = append(waits, took)
	}
	t.row("newline to decision", waits, nil)
	t.target(slices.Max(waits) <= 50*time.Millisecond, "at most 50 ms at the worst")
}

func rewake(r *rig, t *table) {
	hook, out := r.lane("asleep", 0).waits(2, "--rewake")
	perMinute, peak := r.idles(hook.Process.Pid), must(script.Memory(hook.Process.Pid, "VmHWM"))
	check(errors.Join(hook.Process.Kill(), out.Close()))
	var wakes sample
	for i := range r.n("waits") {
		text, took := r.lane(fmt.Sprintf("woken-%d", i), 0).wakes(2, "--rewake")
		if !strings.HasSuffix(text, "\n\n"+entry(0)+"\n") {
			fail("it handed over %.300q", text)
		}
		wakes = append(wakes, took)
	}
	t.row("newline to text", wakes, nil)
	t.figure("CPU in an idle minute", "%s", ms(perMinute))
	t.figure("peak memory of that", "%s", megabytes(peak))
	t.target(perMinute < 10*time.Millisecond, "an idle minute under 10 ms of CPU")
	t.target(peak <= 15<<20, "under 15 MB")
}

// waits starts a hook on an inbox with nothing new, and returns when it waits. Its
// decision comes from the stream that belongs to the exit status.
func (l *lane) waits(status int, flags ...string) (*exec.Cmd, *os.File) {
	out, childOut, err := os.Pipe()
	check(err)
	stdout, stderr := childOut, l.stderr
	if status != 0 {
		stdout, stderr = l.stderr, childOut
	}
	hook := l.start(l.stop(), stdout, stderr, append([]string{"heartbeat-stop", "--inbox", l.inbox}, flags...)...)
	check(childOut.Close()) // the child has its own
	l.untilWaits(hook.Process.Pid)
	return hook, out
}

// wakes appends an entry when a hook waits, and returns what it then printed, and after
// how long.
func (l *lane) wakes(status int, flags ...string) (text string, took time.Duration) {
	hook, out := l.waits(status, flags...)
	appended := appendLine(l.inbox, entry(l.next))
	chunk := make([]byte, 64<<10)
	for {
		n, err := out.Read(chunk)
		if err != nil { // the end; the exit status shows whether the hook failed
			break
		}
		text, took = text+string(chunk[:n]), time.Since(appended)
	}
	err := hook.Wait()
	if status != 0 && hook.ProcessState.ExitCode() == status {
		err = nil
	}
	l.verify(hook.Args, errors.Join(err, out.Close()))
	return text, took
}

func launch(r *rig, t *table) {
	t.inTurn(r.n("pairs"), way{"in the launcher", r.once("heartbeat-launch", "--", "true")}, way{"`true`", r.once("true")})
	signal, said := r.path("exit-signal"), must(os.Create(r.path("said")))
	r.atEnd(func() { check(said.Close()) })
	begins := func() *exec.Cmd {
		out, childOut, err := os.Pipe()
		check(err)
		one := r.start(nil, childOut, said, "heartbeat-launch", "--timeout", "1h", "--idle-timeout", "1h", "--exit-signal", signal,
			"--", "sh", "-c", "echo begun; exec sleep 1000")
		check(childOut.Close())
		begun := make([]byte, len("begun\r\n"))
		if _, err := io.ReadFull(out, begun); err != nil || string(begun) != "begun\r\n" {
			fail("the launcher's command printed %q: %w", begun, err)
		}
		check(out.Close())
		return one
	}
	ends := func(one *exec.Cmd) time.Duration {
		began := time.Now()
		check(os.WriteFile(signal, nil, 0o600))
		check(one.Wait())
		return time.Since(began)
	}
	var notices sample
	for range r.n("waits") {
		notices = append(notices, ends(begins()))
	}
	t.row("file to end", notices, nil)
	one := begins()
	idle := r.idles(one.Process.Pid)
	ends(one)
	t.figure("CPU in an idle minute", "%s", ms(idle))
	t.target(median(notices) <= 20*time.Millisecond, "file to end in 20 ms in the median")
	t.target(idle < 10*time.Millisecond, "an idle minute under 10 ms of CPU")

	zeros := fmt.Sprintf("exec head -c %d /dev/zero", r.n("flood"))
	ways := []way{{"launcher, zeros", r.flood("heartbeat-launch", "--", "sh", "-c", zeros)}}
	if _, err := exec.LookPath("script"); err == nil {
		ways = append(ways, way{"`script -q`, zeros", r.flood("script", "-qc", zeros, "/dev/null")})
	}
	t.inTurn(r.n("floods"), ways...)
	t.figure("zeros", "%s", megabytes(int64(r.n("flood"))))
}

// flood is a way to read all the zeros that a command prints.
func (r *rig) flood(argv ...string) func() time.Duration {
	return func() time.Duration {
		out, took := r.run(nil, nil, append([]string{"sh", "-c", `"$@" | wc -c`, "sh"}, argv...)...)
		if out = strings.TrimSpace(out); out != fmt.Sprint(r.n("flood")) {
			fail("%s bytes came through of %d", out, r.n("flood"))
		}
		return took
	}
}

// seedHost is the seed's start.
//
//go:embed testdata/seed-host.js
var seedHost []byte

// host starts hosts of a client that does nothing, in turn with the seed's.
func host(r *rig, t *table) {
	client, pattern, db := r.path("claude"), r.path("seed-host.js"), r.path("nexus.db")
	check(os.WriteFile(client, []byte("#!/bin/sh\nexec sleep 600\n"), 0o700))
	check(os.WriteFile(pattern, seedHost, 0o600))
	running := make(chan int, 1) // process groups that were reported to run
	guild := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		var said struct{ CancelHandle struct{ PGID int } }
		_ = json.NewDecoder(req.Body).Decode(&said) // what cannot be read names no group
		_, _ = fmt.Fprintf(w, `{"ok":true,"sessionId":%q}`, req.Header.Get("X-Session-Id"))
		if strings.HasSuffix(req.URL.Path, "/running") {
			running <- said.CancelHandle.PGID
		}
	}))
	r.atEnd(guild.Close)
	memories := map[string][]int64{}
	starts := func(program string, argv ...string) way {
		n := 0
		return way{program, func() time.Duration {
			n++
			id := fmt.Sprintf("ses-%s-%d", filepath.Base(argv[0]), n)
			cmd := exec.CommandContext(r.ctx, argv[0], argv[1:]...)
			cmd.Stdin = bytes.NewReader(must(json.Marshal(map[string]any{
				"sessionId": id, "guildToolUrl": guild.URL, "dbPath": db, "cwd": r.dir, "claudeArgs": []string{}, "env": map[string]string{},
				"prompt": "go", "tools": []any{}, "startedAt": "2026-11-22T10:00:00Z", "provider": "claude-code",
			})))
			var said bytes.Buffer
			cmd.Dir, cmd.Stderr, cmd.Env = r.dir, &said, r.environment("HOME="+r.dir, "NODE_PATH="+os.Getenv("NODE_PATH"))
			cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
			began, group := time.Now(), 0
			check(cmd.Start())
			go func() { _ = cmd.Wait() }() // its child, or it itself, is ended by its group
			select {
			case group = <-running:
			case <-time.After(patience):
				fail("%s did not report that it runs: %s", argv[0], &said)
			}
			took := time.Since(began)
			r.stay(time.Duration(r.n("calm")) * time.Millisecond) // until it does nothing any more
			idle := must(script.Memory(group, "Pss"))
			if argv[0] == "node" {
				check(syscall.Kill(group, syscall.SIGTERM))
			} else {
				state := must(must(folder.At(db, id)).Read())
				idle += must(script.Memory(state.Guardian.PID, "Pss"))
				r.run([]string{"HOME=" + r.dir}, nil, "sh", "-c", `"$@" 2>/dev/null`, "sh", "heartbeat-host", "cancel", id, "--grace", "0s", "--wait", "--db", db)
			}
			memories[program] = append(memories[program], idle)
			return took
		}}
	}
	ways := []way{starts("heartbeat-host start", r.program("heartbeat-host"), "start", "--claude", client)}
	if _, err := exec.LookPath("node"); err == nil {
		ways = append(ways, starts("the seed's start in node", "node", pattern, client))
	}
	took := t.inTurn(r.n("hosts"), ways...)
	for _, w := range ways {
		t.figure("memory when idle: "+w.name, "%s", megabytes(median(memories[w.name])))
	}
	if len(ways) < 2 {
		t.figure("there is no node here to compare it with", "")
		return
	}
	libraries, _ := exec.CommandContext(r.ctx, "node", pattern).Output() // it says what it finds
	t.figure("node's libraries", "%s", bytes.TrimSpace(libraries))
	share := float64(median(memories[ways[0].name])) / float64(median(memories[ways[1].name]))
	t.target(took.ratio() <= 1.0/2, "a start in half of the seed's time")
	t.target(share <= 1.0/3, "%.2f of the seed's memory, a third at most", share)
}
