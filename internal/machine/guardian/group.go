package guardian

import (
	"context"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"

	"heartbeat/internal/machine"
)

// Group makes a command that leads a process group, to which end is sent when ctx is done. It waits for output at most
// one second after that or after the command's end: a process that left the group may hold the pipes open.
func Group(ctx context.Context, end syscall.Signal, path string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return SignalGroup(cmd.Process.Pid, end) }
	cmd.WaitDelay = time.Second
	return cmd
}

// ReadWaiting reads what waits in a pipe or a terminal, and returns io.EOF if nothing does. It serves after a deadline:
// this process may have been late to read, and [os.File.Read] then reads nothing at all.
func ReadWaiting(f *os.File, b []byte) (n int, err error) {
	raw, err := f.SyscallConn()
	if err != nil {
		return 0, err
	}
	_ = f.SetReadDeadline(time.Time{})
	if wrong := raw.Read(func(fd uintptr) bool {
		n, err = syscall.Read(int(fd), b)
		return true
	}); wrong != nil {
		return 0, wrong
	}
	if n <= 0 {
		return 0, io.EOF
	}
	return n, err
}

// Send signals exactly this process: on Linux an [os.Process] is a pidfd, which never means a later process with its
// pid. The error matches [os.ErrProcessDone] if the process has ended. A stopped process gets SIGTERM too.
func Send(p machine.Entry, sig syscall.Signal) error {
	process, err := os.FindProcess(p.PID)
	if err != nil {
		return err
	}
	defer func() { _ = process.Release() }() // it is no child
	if machine.ProcessStart(p.PID) != p.Start {
		return os.ErrProcessDone
	}
	return signalWith(sig, func(sig syscall.Signal) error { return process.Signal(sig) })
}

// SignalGroup signals a process group as [Send] does a process. The error matches
// [os.ErrProcessDone] if the group is empty.
func SignalGroup(leader int, sig syscall.Signal) error {
	if err := signalWith(sig, func(sig syscall.Signal) error { return syscall.Kill(-leader, sig) }); err != syscall.ESRCH {
		return err
	}
	return os.ErrProcessDone
}

// signalWith sends a signal. SIGCONT follows SIGTERM, which a stopped process gets only when it continues.
func signalWith(sig syscall.Signal, send func(syscall.Signal) error) error {
	err := send(sig)
	if err == nil && sig == syscall.SIGTERM {
		_ = send(syscall.SIGCONT) // fails if it has just ended
	}
	return err
}
