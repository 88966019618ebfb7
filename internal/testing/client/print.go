package client

import (
	"bytes"
	"context"
	"syscall"
)

// Run is a client in print mode: it answers one prompt and ends.
type Run struct {
	*Process
	stdout, stderr bytes.Buffer
}

// Result is what a finished Run left behind.
type Result struct {
	Stdout, Stderr string
	ExitCode       int // 128 plus the signal's number when a signal ended it
}

// Print starts "claude -p prompt". The test ends when the client cannot be
// started.
func (w *Workspace) Print(prompt string, o Options) *Run {
	w.t.Helper()
	run := &Run{}
	cmd := w.command(o, "-p", prompt)
	cmd.Stdout, cmd.Stderr = &run.stdout, &run.stderr
	// A session of its own is also a process group of its own, and keeps the
	// client away from the terminal the tests run in.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	must(w.t, cmd.Start())
	run.Process = w.watch(cmd)
	return run
}

// Wait returns the result once the client has ended. The error is the
// context's; the client then goes on running until Kill or the test's end.
func (r *Run) Wait(ctx context.Context) (Result, error) {
	if err := r.wait(ctx); err != nil {
		return Result{}, err
	}
	code, err := r.ExitCode()
	return Result{Stdout: r.stdout.String(), Stderr: r.stderr.String(), ExitCode: code}, err
}
