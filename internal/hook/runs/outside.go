package runs

import (
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
	// outsideWait is how long after its start a hook that ends the turn waits for the
	// commands of runs: the client ends it after ten minutes.
	outsideWait = 8 * time.Minute
	// launcherTakes is how long a command may be given, for a launcher to carry it out
	// between two sessions: it would end with the session.
	launcherTakes = 15 * time.Minute
	// outsideRetry is when a process that failed is started again at the earliest.
	outsideRetry = time.Minute
	outsidePoll  = 100 * time.Millisecond
	// outsideLook is when a hook that waits anyway looks again.
	outsideLook = 2 * time.Second
	maxSaid     = 4 << 10
)

// outside is a process that takes a step of a run in a session of its own, with the
// commands that the run asks for. A hook may be ended at any time, and would take
// them along, or leave them behind with nobody to post what they print. This
// process holds the run's lock, so later steps know that it is at work.
type outside struct {
	done chan struct{}
	// failed is what it said, or "" for an orderly end.
	failed string
	ended  time.Time
}

// runs reports whether the process was started by this hook and has not ended.
func (o *outside) runs() bool {
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

// carryOut has another process carry out the commands that a step of the run has
// left to it, and post the results that this hook has no time for. It reports
// whether that is to be waited for.
func (d *driver) carryOut(b *orchestrate.Bridge, report orchestrate.Report) bool {
	if d.Flags.Launched && report.Longest > launcherTakes {
		d.Note("run %s: a command that may take %s is left to the launcher, which carries it out between two sessions", report.Run, words.Took(report.Longest))
		return false
	}
	o := d.outside[report.Dir]
	switch {
	case o.runs():
		return true
	case o != nil && o.failed != "" && time.Since(o.ended) < outsideRetry:
		d.ComplainOnce(fmt.Errorf("run %s: carry out its commands: %s", report.Run, o.failed))
		d.LookAgainIn(outsideRetry)
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
	said, err := os.CreateTemp("", "heartbeat-outside-")
	if err != nil {
		return nil, err
	}
	_ = os.Remove(said.Name()) // it is only reached by its descriptors
	args := append([]string{"orchestrate", "--once", "--inbox", d.Box.Path(), "--run", b.Run.Dir()}, d.Flags.Runs.Arguments()...)
	cmd := exec.Command(program, args...)
	cmd.Stderr = said // a pipe would break when the hook ends
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(err, said.Close())
	}
	o := &outside{done: make(chan struct{})}
	go func() {
		defer close(o.done)
		defer func() { _ = said.Close() }() // nothing in it is lost
		err := cmd.Wait()
		o.ended = time.Now()
		var exit *exec.ExitError
		if err == nil || errors.As(err, &exit) && exit.ExitCode() == cli.ExitDeadLettered {
			return // where the run goes no further, the next step says why
		}
		text := make([]byte, maxSaid)
		n, _ := said.ReadAt(text, 0) // what it said is shown as far as it can be
		o.failed = strings.TrimSpace(string(text[:n]))
		if o.failed == "" {
			o.failed = err.Error()
		}
	}()
	return o, nil
}

// awaitOutside waits until a run that another process works on can go on, or
// something changed in the inbox. It gives up when the hook's time is over.
func (d *driver) awaitOutside() (again bool) {
	inbox := d.Box.Watch(cli.WatchPoll)
	defer func() { _ = inbox.Close() }() // nothing is lost with it
	look := time.NewTicker(outsidePoll)
	defer look.Stop()
	for d.Age() < outsideWait {
		select {
		case <-inbox.C:
			return true
		case <-look.C:
		}
		for _, b := range d.bridges {
			if d.worked[b.Run.Dir()] && !d.outsideRuns(b) {
				return true
			}
		}
	}
	for dir := range d.worked {
		d.Note("the run in %s is worked on by another process, and goes on at the next Stop", dir)
	}
	return false
}

// outsideRuns reports whether another process works on the run.
func (d *driver) outsideRuns(b *orchestrate.Bridge) bool {
	return d.outside[b.Run.Dir()].runs() || b.Busy()
}
