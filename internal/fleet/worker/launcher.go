package worker

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"time"

	"heartbeat/inbox"
	"heartbeat/internal/cli"
	"heartbeat/internal/machine"
	"heartbeat/internal/see"
)

// Exit statuses of heartbeat-launch that another launcher would repeat.
const (
	statusCannotRun = 126
	statusNotFound  = 127
)

// cannotRun returns the error of sessions that cannot run as configured. The agent ends with heartbeat-launch's status.
func cannotRun(status int) error {
	return cli.Status(status, fmt.Errorf("heartbeat-launch ended with status %d, and says why above: sessions cannot be run like this", status))
}

// child is a running launcher. Its methods do nothing on nil.
type child struct {
	process *os.Process
	done    chan error // gets Wait's error, or nil for an adopted launcher
	asked   bool       // to end
}

// hasWork reports whether an entry waits for a session, or was left by one.
func hasWork(f *see.Facts) bool {
	return f.InFlight != nil || f.Backlog.Entries > 1 || f.Backlog.Entries == 1 && !f.Backlog.Torn
}

func (a *Agent) keepChild() {
	f := &a.facts
	switch {
	case a.o.Launcher == "" || a.child != nil || a.ending != nil || a.doubtful || f.Unreadable != nil:
		return
	case !a.due(launching):
		return
	case !a.o.Persist && (!hasWork(f) || f.Paused != nil || f.Backoff != nil):
		return
	case f.Launcher != nil: // a person's, or that of an agent that was killed before it noted it
		a.retries["launcher"] = retry{at: time.Now().Add(time.Second)}
		return
	}
	c, err := startLauncher(&a.o)
	if err != nil {
		a.end(fmt.Errorf("start %s: %w", a.o.Launcher, err))
		return
	}
	a.child = c
	if err := a.ledger.Launched(inbox.ProcessOf(c.process.Pid)); err != nil {
		a.say(err.Error() + ": should this agent be killed, that launcher is not ended with its next run")
	}
}

// adopt takes over the launcher of a killed run of this agent if it is still at work, so that it ends with the
// agent. Others can write to the ledger, so the kernel has to confirm that the launcher has the inbox.
func (a *Agent) adopt() {
	l := a.ledger.Launcher()
	if a.o.Launcher == "" || l == nil {
		return
	}
	at := see.LauncherOf(a.box)
	if at == nil || at.PID != l.PID {
		return
	}
	process, err := os.FindProcess(l.PID)
	if err != nil {
		return
	}
	died := machine.WatchProcess(l.PID).Died()
	// The process is open by now, so its number cannot become another's.
	if l.Life() != machine.Alive {
		return
	}
	c := &child{process: process, done: make(chan error, 1)}
	go func() { <-died; c.done <- nil }()
	a.child = c
	a.say(fmt.Sprintf("the launcher of a run before this one is at work (process %d), and goes on", l.PID))
}

func startLauncher(o *Options) (*child, error) {
	mode := "drain"
	if o.Persist {
		mode = "persist"
	}
	args := slices.Concat([]string{
		"--inbox", o.Inbox, "--mode", mode, "--timeout", "0", "--output", "log",
		"--on-orphan", string(o.Orphan.Policy), "--max-attempts", fmt.Sprint(o.Orphan.MaxAttempts),
	}, o.Launch, []string{"--"}, o.Command)
	cmd := exec.Command(o.Launcher, args...)
	cmd.Stdout, cmd.Stderr = o.Out, o.Err
	cmd.Env = o.Environ
	// A terminal's signals are for this process alone, which ends the launcher in order.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	c := &child{process: cmd.Process, done: make(chan error, 1)}
	go func() { c.done <- cmd.Wait() }()
	return c, nil
}

func (a *Agent) childEnded(err error) {
	asked := a.child.asked
	a.child = nil
	status := 0
	if exit, is := errors.AsType[*exec.ExitError](err); is {
		status = exit.ExitCode()
	} else if err != nil {
		a.say("wait for the launcher: " + err.Error())
	}
	if asked {
		return
	}
	switch status {
	case cli.ExitError, statusCannotRun, statusNotFound:
		a.end(cannotRun(status))
		return
	case cli.ExitPerson: // unless a launcher has worked before. The person who fixes that also resumes a paused inbox.
		if !a.proven && see.Glance(context.Background(), a.box, nil).Paused == nil {
			a.end(cannotRun(status))
			return
		}
	case cli.ExitOK, cli.ExitDeadLettered:
		a.proven = true
		if f := see.Glance(context.Background(), a.box, nil); !hasWork(&f) {
			return
		}
	}
	n := a.retries[launching].tries + 1
	a.retries[launching] = retry{at: time.Now().Add(backOff(n)), tries: n}
}

// ended returns a channel that gets how the launcher ended.
func (c *child) ended() <-chan error {
	if c == nil {
		return nil
	}
	return c.done
}

// end asks the launcher to end in order: the entry in flight is first answered or given back.
func (c *child) end() {
	if c != nil && !c.asked {
		c.asked = true
		_ = c.process.Signal(syscall.SIGTERM) // it may have ended
	}
}

// kill ends the launcher and its session at once.
func (c *child) kill() {
	if c != nil {
		c.asked = true
		// The first signal that arrives asks the launcher to end. The next one ends it at once.
		for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGQUIT} {
			_ = c.process.Signal(sig)
		}
	}
}
