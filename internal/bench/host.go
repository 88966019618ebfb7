package main

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Targets for a host, as parts of what the seed takes.
const (
	maxHostStart  = 1.0 / 2
	maxHostMemory = 1.0 / 3
)

// seedHost is the seed's start.
//
//go:embed testdata/seed-host.js
var seedHost []byte

// idleFor is how long a host has done nothing when its memory is measured.
const idleFor = 2 * time.Second

// measureHost starts hosts of a client that does nothing, in turn with the seed's.
func measureHost(b *bench) (table, error) {
	t := table{
		title:  "A host",
		header: []string{"", "runs", "start to running, median", "min", "max", "memory when idle, median"},
	}
	r, err := newHostRig(b)
	if err != nil {
		return t, err
	}
	defer r.guild.Close()
	var ours, seed hostSample
	for n := range b.plan.hosts {
		if err := ours.add(r.ours(n)); err != nil {
			return t, err
		}
		if r.script == "" {
			continue
		}
		if err := seed.add(r.seed(n)); err != nil {
			return t, err
		}
	}
	t.how = "From the start of the command until the guild has the running report. The client does nothing. " +
		"Memory is the proportional set size (Pss) of all processes but the client, that of the guardian too."
	ours.row(&t, "heartbeat-host start")
	if r.script == "" {
		t.result = "There is no node here to compare it with."
		return t, nil
	}
	seed.row(&t, "the seed's start in node")
	t.how += " The seed is a lower bound: it serves nothing, and loads " + r.libraries() + "."
	start, memory := ours.started.over(seed.started), float64(median(ours.memory))/float64(median(seed.memory))
	t.result = fmt.Sprintf("The start takes %.2f of the seed's time (target %.2f): %s. The memory is %.2f of its (target %.2f): %s.",
		start, maxHostStart, met(start <= maxHostStart), memory, maxHostMemory, met(memory <= maxHostMemory))
	return t, nil
}

// hostSample are the starts of one program.
type hostSample struct {
	started sample
	memory  []int64
}

func (s *hostSample) add(one started, err error) error {
	s.started, s.memory = append(s.started, one.took), append(s.memory, one.memory)
	return err
}

func (s *hostSample) row(t *table, name string) {
	t.add(name, fmt.Sprint(len(s.started)), ms(s.started.median()), ms(s.started.min()), ms(s.started.max()), megabytes(median(s.memory)))
}

// started is one start.
type started struct {
	took   time.Duration
	memory int64 // bytes
}

// hostRig is a guild and a client for hosts.
type hostRig struct {
	b       *bench
	dir     string
	client  string
	script  string // of the seed, "" where there is no node
	guild   *httptest.Server
	running chan int // process groups that were reported to run
}

func newHostRig(b *bench) (*hostRig, error) {
	dir, err := b.folder("host")
	if err != nil {
		return nil, err
	}
	r := &hostRig{b: b, dir: dir, client: filepath.Join(dir, "claude"), running: make(chan int, 1)}
	if err := os.WriteFile(r.client, []byte("#!/bin/sh\nexec sleep 600\n"), 0o700); err != nil {
		return nil, err
	}
	if _, err := exec.LookPath("node"); err == nil {
		r.script = filepath.Join(dir, "seed-host.js")
		if err := os.WriteFile(r.script, seedHost, 0o600); err != nil {
			return nil, err
		}
	}
	r.guild = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		var said struct{ CancelHandle struct{ PGID int } }
		_ = json.NewDecoder(req.Body).Decode(&said) // what cannot be read names no group
		_, _ = fmt.Fprintf(w, `{"ok":true,"sessionId":%q}`, req.Header.Get("X-Session-Id"))
		if strings.HasSuffix(req.URL.Path, "/running") {
			r.running <- said.CancelHandle.PGID
		}
	}))
	return r, nil
}

func (r *hostRig) config(id string) []byte {
	text, err := json.Marshal(map[string]any{
		"sessionId": id, "guildToolUrl": r.guild.URL, "dbPath": filepath.Join(r.dir, "nexus.db"), "cwd": r.dir,
		"claudeArgs": []string{}, "env": map[string]string{}, "prompt": "go", "tools": []any{},
		"startedAt": "2026-11-22T10:00:00Z", "provider": "claude-code",
	})
	if err != nil {
		panic(err) // made of strings
	}
	return text
}

// run starts a host, waits until the guild hears of it, and measures it.
func (r *hostRig) run(id string, argv ...string) (one started, group int, err error) {
	cmd := exec.CommandContext(r.b.ctx, argv[0], argv[1:]...)
	cmd.Stdin, cmd.Dir = bytes.NewReader(r.config(id)), r.dir
	cmd.Env = append(environment(), "HOME="+r.dir, "NODE_PATH="+os.Getenv("NODE_PATH"))
	var said bytes.Buffer
	cmd.Stderr = &said
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	begin := time.Now()
	if err := cmd.Start(); err != nil {
		return one, 0, err
	}
	go func() { _ = cmd.Wait() }() // its child, or it itself, is ended by its group
	select {
	case group = <-r.running:
		one.took = time.Since(begin)
	case <-time.After(patience):
		return one, 0, fmt.Errorf("%s did not report that it runs: %s", argv[0], &said)
	}
	time.Sleep(idleFor)
	return one, group, nil
}

// ours starts heartbeat-host.
func (r *hostRig) ours(n int) (started, error) {
	id := fmt.Sprintf("ses-%d", n)
	one, group, err := r.run(id, r.b.programs.host, "start", "--claude", r.client)
	if err != nil {
		return one, err
	}
	one.memory, err = memoryOf(group)
	var state struct{ Guardian struct{ PID int } }
	text, readErr := os.ReadFile(filepath.Join(r.dir, "heartbeat-host", id, "state.json"))
	if err = errors.Join(err, readErr); err == nil {
		err = json.Unmarshal(text, &state)
	}
	if err == nil {
		var guardian int64
		guardian, err = memoryOf(state.Guardian.PID)
		one.memory += guardian
	}
	cancel := exec.Command(r.b.programs.host, "cancel", id, "--grace", "0s", "--wait", "--db", filepath.Join(r.dir, "nexus.db"))
	cancel.Env = append(environment(), "HOME="+r.dir)
	if out, endErr := cancel.CombinedOutput(); endErr != nil {
		err = errors.Join(err, fmt.Errorf("cancel: %w: %s", endErr, out))
	}
	return one, err
}

// seed starts the seed's pattern.
func (r *hostRig) seed(n int) (started, error) {
	one, group, err := r.run(fmt.Sprintf("seed-%d", n), "node", r.script, r.client)
	if err != nil {
		return one, err
	}
	one.memory, err = memoryOf(group)
	return one, errors.Join(err, syscall.Kill(group, syscall.SIGTERM))
}

// memoryOf is the proportional set size of a process, in bytes.
func memoryOf(pid int) (int64, error) {
	m, err := memory(pid)
	if err == nil && m["Pss"] == 0 {
		err = fmt.Errorf("process %d has no Pss", pid)
	}
	return m["Pss"], err
}

// libraries says what the seed's script loads.
func (r *hostRig) libraries() string {
	cmd := exec.CommandContext(r.b.ctx, "node", r.script)
	found, err := cmd.Output()
	if text := strings.TrimSpace(string(found)); err == nil && text != "" {
		return "node's own modules and " + text
	}
	return "node's own modules alone"
}
