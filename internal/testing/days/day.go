// Package days has sessions drain an inbox while their hook is killed again and
// again, and checks heartbeat's promises at the end: no entry is lost, none is
// answered twice, and a kill costs at most one turn.
package days

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"heartbeat/internal/testing/agent"
)

// Day is one such drain. Set its fields, then call Run.
type Day struct {
	// Command is the path of heartbeat-stop, which is the hook and has `recover`.
	Command string
	// Dir is where the inbox, in a directory of its own, and the transcripts go.
	Dir     string
	Entries int
	// KillEvery is after how many ticks (Stops) a hook is killed.
	KillEvery int
	// Random chooses the moments of the kills.
	Random *rand.Rand
	// Env is the environment of every process.
	Env []string
	// Tick, if set, is called with the number of ticks so far.
	Tick func(n int)

	killer killer
	report Report
	said   []string // the hooks' messages to people
}

// Report is the result of a day.
type Report struct {
	Ticks    int
	Kills    int // hooks that were killed before they ended by themselves
	Sessions int
	// Redeliveries are counted from the inbox's events.
	Redeliveries int
	// Took is the time of all sessions and of the recoveries between them.
	Took time.Duration
}

// Inbox is the path of the inbox.
func (d *Day) Inbox() string { return filepath.Join(d.Dir, "inbox", "inbox.jsonl") }

// Run fills the inbox and runs one session after the other until one ends without
// being killed. It returns an error if a promise does not hold.
func (d *Day) Run(ctx context.Context) (Report, error) {
	if err := d.fill(); err != nil {
		return Report{}, fmt.Errorf("fill the inbox: %w", err)
	}
	d.killer = killer{every: d.KillEvery, random: d.Random}
	began := time.Now()
	for killed := true; killed; {
		var err error
		if killed, err = d.session(ctx); err == nil && killed {
			err = d.recover(ctx)
		}
		if err != nil {
			return d.report, fmt.Errorf("session %d: %w", d.report.Sessions, err)
		}
	}
	d.report.Took = time.Since(began)
	err := d.check()
	return d.report, err
}

// policy lets every entry be answered, however often its hook is killed.
func policy() []string { return []string{"--on-orphan", "retry", "--max-attempts", "1000"} }

// session runs a session until its stop is approved or its hook is killed.
func (d *Day) session(ctx context.Context) (killed bool, err error) {
	d.report.Sessions++
	a := agent.Agent{
		Hook:       append([]string{d.Command, "--inbox", d.Inbox()}, policy()...),
		Env:        d.Env,
		Transcript: filepath.Join(d.Dir, "transcript-"+strconv.Itoa(d.report.Sessions)+".jsonl"),
		Answer:     answer,
		Started:    d.started,
		Turn:       func(string, string) { d.killer.ended() },
		Stderr:     func(line string) { d.said = append(d.said, line) },
	}
	err = a.Run(ctx, greeting)
	if killed = d.killer.killed(err) && ctx.Err() == nil; killed {
		d.report.Kills++
		return true, nil
	}
	return false, err
}

func (d *Day) started(event string, hook *os.Process) {
	if event != "Stop" {
		return
	}
	d.report.Ticks++
	d.killer.started(d.report.Ticks, hook)
	if d.Tick != nil {
		d.Tick(d.report.Ticks)
	}
}

// recover does what a launcher does between two sessions.
func (d *Day) recover(ctx context.Context) error {
	cmd := exec.CommandContext(ctx, d.Command, append([]string{"recover", "--inbox", d.Inbox()}, policy()...)...)
	cmd.Env = d.Env
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("recover %s: %w: %s", d.Inbox(), err, out)
	}
	return nil
}

// Space returns how many bytes a file, or everything in a directory, takes on the
// disk. Holes take none.
func Space(path string) (bytes int64, err error) {
	err = filepath.WalkDir(path, func(_ string, entry os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		stat, ok := info.Sys().(*syscall.Stat_t)
		if !ok {
			return errors.New("the system does not tell")
		}
		bytes += stat.Blocks * 512 // always 512, whatever the file system's block size (stat(2))
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("measure the space that %s takes: %w", path, err)
	}
	return bytes, nil
}
