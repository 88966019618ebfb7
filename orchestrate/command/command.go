package command

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"
)

const (
	// grace is how long a command may take to end after SIGTERM.
	grace = time.Second
	// letGo is how long the output is read after the command's end, while a process that it
	// left behind holds the output open.
	letGo = time.Second
)

// Command is a command of a task.
type Command struct {
	Argv    []string
	Dir     string
	Env     []string // added to this process's own, as NAME=VALUE
	Timeout time.Duration
	Success int // the exit status that counts as success
}

// Outcome is how a command ended.
type Outcome struct {
	Stdout, Stderr string // at most MaxOutput of each
	// Cut says that the command printed more.
	Cut    bool
	Status int // the exit status, -1 if there is none
	// Failure says in words why the command failed; "" if it succeeded.
	Failure string
}

// Run runs the command until it ends, its time is over, or ctx is done. All processes in the
// command's process group end with it. On Linux the command ends with this process.
func (c Command) Run(ctx context.Context) Outcome {
	ctx, stop := context.WithTimeout(ctx, c.Timeout)
	defer stop()
	cmd := exec.Command(c.Argv[0], c.Argv[1:]...)
	cmd.Dir, cmd.Env = c.Dir, append(os.Environ(), c.Env...)
	var out, errs output
	cmd.Stdout, cmd.Stderr = &out, &errs
	cmd.SysProcAttr = family()
	cmd.WaitDelay = letGo
	err := wait(ctx, cmd)
	o := Outcome{Stdout: string(out.kept), Stderr: string(errs.kept), Cut: out.cut || errs.cut, Status: -1}
	if cmd.ProcessState != nil {
		o.Status = cmd.ProcessState.ExitCode()
	}
	o.Failure = c.failure(ctx, err, o)
	return o
}

// wait starts the command and waits for it. If ctx is done first, the whole process group is
// ended. Processes of the group that are left at the end are killed.
func wait(ctx context.Context, cmd *exec.Cmd) error {
	started := make(chan error)
	ended := make(chan error, 1)
	go func() {
		defer onOneThread()()
		err := cmd.Start()
		started <- err
		if err == nil {
			ended <- cmd.Wait()
		}
	}()
	if err := <-started; err != nil {
		return err
	}
	group := -cmd.Process.Pid
	defer func() { _ = syscall.Kill(group, syscall.SIGKILL) }() // usually none is left
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
		_ = syscall.Kill(group, syscall.SIGTERM) // it may have ended just now
	}
	select {
	case err := <-ended:
		return err
	case <-time.After(grace):
		_ = syscall.Kill(group, syscall.SIGKILL)
	}
	return <-ended
}

func (c Command) failure(ctx context.Context, err error, o Outcome) string {
	var exit *exec.ExitError
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return fmt.Sprintf("it was ended after %v", c.Timeout)
	case ctx.Err() != nil:
		return fmt.Sprintf("it was ended: %v", context.Cause(ctx))
	case err != nil && !errors.As(err, &exit) && !errors.Is(err, exec.ErrWaitDelay): // a process that it left behind holds its output open
		return err.Error()
	case o.Status != c.Success:
		return fmt.Sprintf("it ended with status %d, and not %d", o.Status, c.Success)
	case o.Cut:
		return fmt.Sprintf("it printed more than %d MiB, and the rest was cut off: have it print to a file", MaxOutput>>20)
	}
	return ""
}
