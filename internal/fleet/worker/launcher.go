package worker

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"time"

	"heartbeat/internal/fleet/upstream"
	"heartbeat/internal/machine"
	"heartbeat/internal/see"
)

// failing is how many launchers in a row end without an answer before no more messages
// are taken.
const failing = 5

// Statuses of heartbeat-launch after which another one could not do better.
const (
	statusUsage     = 1
	statusPerson    = 78 // unless a launcher has worked before, or the inbox waits for that person
	statusCannotRun = 126
	statusNotFound  = 127
)

// LauncherError says that sessions cannot be run as they are asked for.
type LauncherError struct{ Status int }

// Error is a sentence.
func (e *LauncherError) Error() string {
	return fmt.Sprintf("heartbeat-launch ended with status %d, and says why above: sessions cannot be run like this", e.Status)
}

// child is a launcher that runs. Its methods do nothing on nil.
type child struct {
	process *os.Process
	done    chan error // what Wait returned; nil for one that was adopted
	asked   bool       // to end
}

// keepChild starts a launcher if there is something for one to do.
func (a *Agent) keepChild() {
	f := &a.facts
	switch {
	case a.o.Launcher == "" || a.child != nil || a.ending != nil || a.doubtful || f.Unreadable != nil:
		return
	case time.Now().Before(a.notUntil):
		return
	case !a.o.Persist && (!a.waits() || f.Paused != nil || f.Backoff != nil):
		return
	case f.Launcher != nil: // a person's, or one whose agent was killed as it started it
		a.retries["launcher"] = retry{at: time.Now().Add(time.Second)}
		return
	}
	delete(a.retries, "launcher")
	c, err := startLauncher(&a.o)
	if err != nil {
		a.end(fmt.Errorf("start %s: %w", a.o.Launcher, err))
		return
	}
	a.child = c
	pid := c.process.Pid
	if err := a.ledger.Launched(upstream.Launcher{PID: pid, Boot: machine.BootID(), Namespace: machine.PIDNamespace(), Start: machine.ProcessStart(pid)}); err != nil {
		a.say(err.Error() + ": should this agent be killed, that launcher is not ended with its next run")
	}
}

// adopt takes over the launcher that a killed run of this agent started, if that is still at
// work: it is to end with the agent. That it has the inbox is the kernel's word, since others
// can write to the ledger.
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
	// The process is held by now, so that its number cannot become another's.
	if alive, _ := machine.Lives(l.Boot, l.Namespace, l.PID, l.Start); !alive {
		return
	}
	c := &child{process: process, done: make(chan error, 1)}
	go func() { <-died; c.done <- nil }()
	a.child = c
	a.say(fmt.Sprintf("the launcher of a run before this one is at work (process %d), and goes on", l.PID))
}

// waits reports whether an entry waits for a session, or was left by one.
func (a *Agent) waits() bool {
	b := a.facts.Backlog
	return a.facts.InFlight != nil || b.Entries > 1 || b.Entries == 1 && !b.Torn
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
	// What a terminal sends is for this process, which ends the launcher in order.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	c := &child{process: cmd.Process, done: make(chan error, 1)}
	go func() { c.done <- cmd.Wait() }()
	return c, nil
}

// childEnded judges how the launcher ended, and when another may start.
func (a *Agent) childEnded(err error) {
	asked := a.child.asked
	a.child = nil
	status := 0
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		status = exit.ExitCode()
	} else if err != nil {
		a.say("wait for the launcher: " + err.Error())
	}
	if asked {
		return
	}
	switch status {
	case statusUsage, statusCannotRun, statusNotFound:
		a.end(&LauncherError{status})
		return
	case statusPerson:
		if !a.proven && !a.isPaused() {
			a.end(&LauncherError{status})
			return
		}
	case 0, 3:
		a.proven = true
		if a.failures == 0 {
			a.failures = -1 // what it answered may not have been looked at
		}
	}
	a.failures++
	if a.failures > 0 {
		a.notUntil = time.Now().Add(backOff(a.failures))
	}
}

// isPaused reports whether delivery is paused, as after an error of the API that a person has
// to put right: whoever does that resumes it, too.
func (a *Agent) isPaused() bool {
	v, err := a.box.View()
	if err != nil {
		return false // the next look says why
	}
	defer func() { _ = v.Close() }() // only read
	paused, err := v.Paused()
	return err == nil && paused != nil
}

// ended is how the launcher ended.
func (c *child) ended() <-chan error {
	if c == nil {
		return nil
	}
	return c.done
}

// end asks the launcher to end: the entry in flight is answered first, or given back.
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
		// Of those that come together one may be the first to be heard: the next ends it at once.
		for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGQUIT} {
			_ = c.process.Signal(sig)
		}
	}
}

// stop ends the launcher, and waits for that.
func (c *child) stop() error {
	if c == nil {
		return nil
	}
	c.end()
	err := <-c.done
	var exit *exec.ExitError
	if errors.As(err, &exit) || errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	return err
}
