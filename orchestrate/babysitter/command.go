package babysitter

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"

	"heartbeat/internal/machine/guardian"
	runs "heartbeat/orchestrate/run"
)

// MaxOutput limits, in bytes, how much of each output stream of a task's command is kept.
const MaxOutput = 16 << 20

// Outcome is how the command of a task ended.
type Outcome struct {
	Stdout, Stderr string // the end of each, at most MaxOutput
	// Cut says that the command printed more.
	Cut    bool
	Status int // the exit status, -1 if there is none
	// Failure says in words why the command failed, or is "" if it succeeded.
	Failure string
}

// Execute runs the command of a task until it ends, its time is over, or ctx is done. All processes in the
// command's process group end with it. On Linux the command ends with this process.
func Execute(ctx context.Context, c runs.Command) Outcome {
	ctx, stop := context.WithTimeout(ctx, c.Timeout)
	defer stop()
	out, errs := &tail{limit: MaxOutput}, &tail{limit: MaxOutput}
	cmd := guardian.Group(ctx, syscall.SIGTERM, c.Argv[0], c.Argv[1:]...)
	cmd.Dir, cmd.Env, cmd.WaitDelay = c.Cwd, append(os.Environ(), c.Env...), letGo
	cmd.Stdout, cmd.Stderr = out, errs
	guardian.DiesWithParent(cmd.SysProcAttr)
	runtime.LockOSThread() // the command dies with the thread that started it
	defer runtime.UnlockOSThread()
	err := cmd.Run()
	stdout, wrote := out.look()
	stderr, wroteErrs := errs.look()
	o := Outcome{Stdout: string(stdout), Stderr: string(stderr), Cut: wrote > len(stdout) || wroteErrs > len(stderr), Status: -1}
	if cmd.Process != nil {
		_ = guardian.SignalGroup(cmd.Process.Pid, syscall.SIGKILL) // usually none is left
		o.Status = cmd.ProcessState.ExitCode()
	}
	o.Failure = failureOf(ctx, c, err, o)
	return o
}

func failureOf(ctx context.Context, c runs.Command, err error, o Outcome) string {
	var exit *exec.ExitError
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return fmt.Sprintf("it was ended after %v", c.Timeout)
	case ctx.Err() != nil:
		return fmt.Sprintf("it was ended: %v", context.Cause(ctx))
	// ErrWaitDelay: a process that the command left behind holds its output open.
	case err != nil && !errors.As(err, &exit) && !errors.Is(err, exec.ErrWaitDelay):
		return err.Error()
	case o.Status != c.Success:
		return fmt.Sprintf("it ended with status %d, and not %d", o.Status, c.Success)
	case o.Cut:
		return fmt.Sprintf("it printed more than %d MiB, and its beginning was cut off: have it print to a file", MaxOutput>>20)
	}
	return ""
}
