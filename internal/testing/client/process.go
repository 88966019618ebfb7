package client

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// Options are the ways in which one start of the client can differ.
type Options struct {
	Settings string   // --settings: a file's path or the JSON itself; "" for none
	Resume   string   // --resume: a session id; "" for a new session
	Args     []string // more arguments, before the prompt
	Env      []string // more NAME=value entries, which override the harness's own
	Rows     uint16   // of an interactive session's terminal; 0 for 40
	Cols     uint16   // of an interactive session's terminal; 0 for 120
}

// arguments is the command line without the prompt.
func (o Options) arguments() []string {
	var args []string
	if o.Settings != "" {
		args = append(args, "--settings", o.Settings)
	}
	if o.Resume != "" {
		args = append(args, "--resume", o.Resume)
	}
	return append(args, o.Args...)
}

// Entries for Options.Env that tests of long or failing sessions need.
const (
	// NoBlockCap lifts the limit of 8 consecutive blocks of a Stop hook.
	NoBlockCap = "CLAUDE_CODE_STOP_HOOK_BLOCK_CAP=0"
	// NoRetries makes an API error end the turn at once; by default the client
	// retries 10 times over minutes.
	NoRetries = "CLAUDE_CODE_MAX_RETRIES=0"
)

// Process is a started client. It leads a process group of its own.
type Process struct {
	cmd    *exec.Cmd
	exited chan struct{} // closed once the client has been reaped
}

// command prepares a client with the workspace's folder and environment.
func (w *Workspace) command(o Options, args ...string) *exec.Cmd {
	cmd := exec.Command(w.binary, append(o.arguments(), args...)...)
	cmd.Dir = w.Project
	cmd.Env = w.environ(o.Env)
	// A process that outlives the client may hold its output pipes open; the
	// output is taken as complete this long after the client's end.
	cmd.WaitDelay = 5 * time.Second
	return cmd
}

// watch reaps a started client and kills its group when the test ends.
func (w *Workspace) watch(cmd *exec.Cmd) *Process {
	p := &Process{cmd: cmd, exited: make(chan struct{})}
	go func() {
		defer close(p.exited)
		_ = cmd.Wait() // the state says how it ended, see ExitCode
	}()
	w.t.Cleanup(p.Kill)
	return p
}

// Pid is the client's process id, and its process group's.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Signal sends a signal to the client alone, as a person's kill would. The
// error is os.ErrProcessDone after its end.
func (p *Process) Signal(sig os.Signal) error { return p.cmd.Process.Signal(sig) }

// Kill sends SIGKILL to the client's whole process group and returns once the
// client is reaped. Hooks run in sessions of their own and survive it until the
// workspace's cleanup. After the client's end it does nothing.
func (p *Process) Kill() {
	select {
	case <-p.exited:
		return // the group's id may belong to someone else by now
	default:
	}
	_ = syscall.Kill(-p.Pid(), syscall.SIGKILL) // ESRCH: it ended just now
	<-p.exited
}

// wait blocks until the client has ended. The error is the context's.
func (p *Process) wait(ctx context.Context) error {
	select {
	case <-p.exited:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("client: waiting for the client's end: %w", ctx.Err())
	}
}

// ExitCode is the exit status of an ended client, or 128 plus the signal's
// number when a signal ended it, as a shell would say. It is an error to ask
// before the end.
func (p *Process) ExitCode() (int, error) {
	select {
	case <-p.exited:
	default:
		return 0, errors.New("client: the client is still running")
	}
	status, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
	if ok && status.Signaled() {
		return 128 + int(status.Signal()), nil
	}
	return p.cmd.ProcessState.ExitCode(), nil
}
