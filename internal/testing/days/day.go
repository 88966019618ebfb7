// Package day has a session work through an inbox while its hook is killed again
// and again, and holds what is left against what was promised: no entry is lost,
// none is answered twice, and a kill costs one turn at most.
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

// Day is the work. Set its fields, then Run it.
type Day struct {
	// Command is heartbeat-stop, as the hook and as the verb `recover`.
	Command string
	// Dir gets the inbox, in a directory of its own, and what the sessions say.
	Dir     string
	Entries int
	// KillEvery is after how many ticks, which are Stops, a hook is killed.
	KillEvery int
	// Random draws the moments of the kills.
	Random *rand.Rand
	// Env is the environment of every process.
	Env []string
	// Tick, if set, sees how many ticks there were so far.
	Tick func(n int)

	killer killer
	report Report
	said   []string // by the hooks, to a person
}

// Report is what a day came to.
type Report struct {
	Ticks    int
	Kills    int // hooks that did not live to end by themselves
	Sessions int
	// Redeliveries are those that the inbox's events tell of.
	Redeliveries int
	// Took is the time of the sessions, and of the recoveries between them.
	Took time.Duration
}

// Inbox is its path.
func (d *Day) Inbox() string { return filepath.Join(d.Dir, "inbox", "inbox.jsonl") }

// Run fills the inbox, and starts one session after the other until one was let
// go. It fails if anything is other than promised.
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

// policy has every entry answered, however often its hook is killed.
func policy() []string { return []string{"--on-orphan", "retry", "--max-attempts", "1000"} }

// session is one from its start until the stop was approved or the hook killed.
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

// recover is what a launcher does between two sessions.
func (d *Day) recover(ctx context.Context) error {
	cmd := exec.CommandContext(ctx, d.Command, append([]string{"recover", "--inbox", d.Inbox()}, policy()...)...)
	cmd.Env = d.Env
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("recover %s: %w: %s", d.Inbox(), err, out)
	}
	return nil
}

// Space is how many bytes a file, or all that a directory holds, takes on the
// disk: holes take none.
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
		bytes += stat.Blocks * 512 // whatever the file system's own blocks are (stat(2))
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("measure the space that %s takes: %w", path, err)
	}
	return bytes, nil
}
