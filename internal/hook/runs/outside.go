package runs

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"heartbeat/internal/cli"
	"heartbeat/internal/words"
	"heartbeat/orchestrate"
)

const (
	// hookTime is how long a hook that ends the turn works on runs, and waits for their commands. The client kills it
	// after ten minutes.
	hookTime = 8 * time.Minute
	// launcherTakes is the longest command that the hook of a launched session starts. The launcher runs longer ones
	// between two sessions, because they would end with the session.
	launcherTakes  = 15 * time.Minute
	outsideRetry   = time.Minute // how soon a process that failed may be started again
	outsidePoll    = 100 * time.Millisecond
	outsideRecheck = 2 * time.Second // when a hook that waits anyway polls again
	maxStderr      = 4 << 10
)

// outside is a process that takes a step of a run, with the run's commands, in a session of its own. A hook may be killed
// at any time; its death would end the commands, or leave nobody to post their output. The process holds the run's lock,
// so later steps know that it works.
type outside struct {
	done   chan struct{}
	failed string // what it printed on stderr, "" after an orderly end
	ended  time.Time
}

func (o *outside) isRunning() bool {
	if o == nil {
		return false
	}
	select {
	case <-o.done:
		return false
	default:
		return true
	}
}

// carryOut has another process run the commands that a step left, and post the results for which this hook has no time.
// It reports whether to wait for that process.
func (d *driver) carryOut(b *orchestrate.Bridge, report orchestrate.Report) bool {
	if d.Flags.Launched && report.Longest > launcherTakes {
		d.Note("run %s: a command that may take %s is left to the launcher, which carries it out between two sessions", report.Run, words.Took(report.Longest))
		return false
	}
	o := d.outside[report.Dir]
	switch {
	case o.isRunning():
		return true
	case o != nil && o.failed != "" && time.Since(o.ended) < outsideRetry:
		d.ComplainOnce(fmt.Errorf("run %s: carry out its commands: %s", report.Run, o.failed))
		d.PollAgainIn(outsideRetry)
		return false
	}
	o, err := d.startOutside(b)
	if err != nil {
		d.ComplainOnce(fmt.Errorf("run %s: carry out its commands: %w", report.Run, err))
		return false
	}
	d.outside[report.Dir] = o
	return true
}

func (d *driver) startOutside(b *orchestrate.Bridge) (*outside, error) {
	program, err := cli.Beside("heartbeat")
	if err != nil {
		return nil, err
	}
	stderr, err := os.CreateTemp("", "heartbeat-outside-")
	if err != nil {
		return nil, err
	}
	_ = os.Remove(stderr.Name()) // only its descriptors reach it
	args := append([]string{"orchestrate", "--once", "--inbox", d.Box.Path(), "--run", b.Run.Dir()}, d.Flags.Runs.Arguments()...)
	cmd := exec.Command(program, args...)
	cmd.Stderr = stderr // a pipe would break when the hook ends
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(err, stderr.Close())
	}
	o := &outside{done: make(chan struct{})}
	go func() {
		defer close(o.done)
		defer func() { _ = stderr.Close() }() // it was read
		err := cmd.Wait()
		o.ended = time.Now()
		var exit *exec.ExitError
		if err == nil || errors.As(err, &exit) && exit.ExitCode() == cli.ExitDeadLettered {
			return // if the run can go no further, the next step reports why
		}
		text := make([]byte, maxStderr)
		n, _ := stderr.ReadAt(text, 0) // a short read has all there is
		o.failed = cmp.Or(strings.TrimSpace(string(text[:n])), err.Error())
	}()
	return o, nil
}

// awaitOutside waits until a run can go on that another process works on, or the inbox changes, at most for hookTime.
func (d *driver) awaitOutside() (again bool) {
	inbox := d.Box.Watch(cli.WatchPoll)
	defer func() { _ = inbox.Close() }() // it only reads
	tick := time.NewTicker(outsidePoll)
	defer tick.Stop()
	for d.Age() < hookTime {
		select {
		case <-inbox.C:
			return true
		case <-tick.C:
		}
		for _, b := range d.bridges {
			dir := b.Run.Dir()
			if d.worked[dir] && !d.outside[dir].isRunning() && !b.Busy() {
				return true
			}
		}
	}
	for dir := range d.worked {
		d.Note("the run in %s is worked on by another process, and goes on at the next Stop", dir)
	}
	return false
}
