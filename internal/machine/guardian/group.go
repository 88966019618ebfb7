package guardian

import (
	"context"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// Group makes a command that is the leader of a process group, to which end is sent when
// ctx is done. A second after that, or after its end, its output is no longer waited for:
// what left the group may hold that open.
func Group(ctx context.Context, end syscall.Signal, path string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return SignalGroup(cmd.Process.Pid, end) }
	cmd.WaitDelay = time.Second
	return cmd
}

// SignalGroup signals a process group, as [Send] does a process. The error matches
// [os.ErrProcessDone] if nobody is left in it.
func SignalGroup(leader int, sig syscall.Signal) error {
	if err := asks(sig, func(sig syscall.Signal) error { return syscall.Kill(-leader, sig) }); err != syscall.ESRCH {
		return err
	}
	return os.ErrProcessDone
}

// asks sends a signal. Who is stopped gets that to end only when it continues.
func asks(sig syscall.Signal, send func(syscall.Signal) error) error {
	err := send(sig)
	if err == nil && sig == syscall.SIGTERM {
		_ = send(syscall.SIGCONT) // it has just ended
	}
	return err
}
