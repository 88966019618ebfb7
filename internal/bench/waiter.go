package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"
)

// waiter is a hook that waits for an entry.
type waiter struct {
	*runner
	cmd      *exec.Cmd
	decision <-chan decision // gets one, when the hook has closed its stdout
}

// decision is what a hook printed, and when its end was read.
type decision struct {
	stdout []byte
	at     time.Time
	err    error
}

func (l *lane) startWaiting() (*waiter, error) {
	return l.startHook(func(cmd *exec.Cmd, out *os.File) { cmd.Stdout, cmd.Stderr = out, l.stderr },
		"--mode", "persist", "--idle-interval", "60")
}

// startHook starts a hook. connect chooses the stream that has its decision.
func (l *lane) startHook(connect func(*exec.Cmd, *os.File), flags ...string) (*waiter, error) {
	stdin, err := l.stop()
	if err != nil {
		return nil, err
	}
	in, err := filled(stdin)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	out, childOut, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer childOut.Close() // the child has its own
	cmd := exec.CommandContext(l.ctx, l.hook, append([]string{"--inbox", l.inbox}, flags...)...)
	cmd.Env, cmd.Stdin = environment(), in
	connect(cmd, childOut)
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(err, out.Close())
	}
	return &waiter{l.runner, cmd, readDecision(out)}, nil
}

func readDecision(out *os.File) <-chan decision {
	done := make(chan decision, 1)
	go func() {
		var d decision
		chunk := make([]byte, 64<<10)
		for {
			n, err := out.Read(chunk)
			if n > 0 {
				d.stdout, d.at = append(d.stdout, chunk[:n]...), time.Now()
			}
			if err != nil {
				break // the end; the exit status shows whether the hook failed
			}
		}
		d.err = out.Close()
		done <- d
	}()
	return done
}

func (w *waiter) awaitWaiting() error {
	return awaitWaiting(w.cmd.Process.Pid, func() error {
		select {
		case d := <-w.decision:
			ended := make(chan decision, 1)
			ended <- d
			w.decision = ended
			return fmt.Errorf("the hook ended before it waited, and printed %.60q", d.stdout)
		default:
			return nil
		}
	})
}

// awaitWaiting returns when the process watches the inbox and is idle: it has not run
// between two looks. ended returns an error if the process has ended.
func awaitWaiting(pid int, ended func() error) error {
	deadline := time.Now().Add(patience)
	for last := notWaiting; time.Now().Before(deadline); time.Sleep(2 * time.Millisecond) {
		now := waitState(pid)
		if now != notWaiting && now == last {
			return nil
		}
		last = now
		if err := ended(); err != nil {
			return err
		}
	}
	return fmt.Errorf("process %d did not wait within %v", pid, patience)
}

// kill kills the hook.
func (w *waiter) kill() error {
	_ = w.cmd.Process.Kill() // it may have ended by itself
	<-w.decision
	_ = w.cmd.Wait() // killed, so it failed
	return w.verify(w.cmd.Args, nil)
}
