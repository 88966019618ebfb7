package command

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"syscall"
	"time"
)

// demoClient starts sessions for the demo.
type demoClient interface {
	// start starts a session. It is killed during its answer to the prompt hang, which
	// may therefore never end; "" if it is not to be killed.
	start(hang string) (*demoSession, error)
}

func (d *demo) client() (demoClient, error) {
	if d.claude {
		return newDemoClaude(d)
	}
	return newDemoStandIn(d)
}

// demoSession is a session in a process group of its own, which a ^C at the terminal
// does not reach: the demo ends it.
type demoSession struct {
	cmd    *exec.Cmd
	held   io.Closer // what keeps the session alive, or nil
	output bytes.Buffer
	busy   <-chan struct{} // closed once it answers the prompt hang; nil if it cannot tell
	// headStart is then how long the prompt is given to reach the model.
	headStart time.Duration
	seen      time.Time
	ended     chan struct{} // closed once it has ended, with err set
	err       error
}

// startSession starts the command. Call await once its pipes are set up.
func startSession(cmd *exec.Cmd) (*demoSession, error) {
	s := &demoSession{cmd: cmd, ended: make(chan struct{})}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Stderr = &s.output
	if cmd.Stdout == nil {
		cmd.Stdout = &s.output
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start a session: %w", err)
	}
	return s, nil
}

// await waits in the background for the process to end.
func (s *demoSession) await() *demoSession {
	go func() {
		defer close(s.ended)
		s.err = s.cmd.Wait()
	}()
	return s
}

func (s *demoSession) pid() int { return s.cmd.Process.Pid }

// isBusy reports whether the session is in the middle of its answer.
func (s *demoSession) isBusy() bool {
	if s.seen.IsZero() {
		s.seen = time.Now()
	}
	select {
	case <-s.busy:
		return true
	default:
		return s.busy == nil && time.Since(s.seen) >= s.headStart
	}
}

func (s *demoSession) hasEnded() bool {
	select {
	case <-s.ended:
		return true
	default:
		return false
	}
}

// kill kills the session as a crash or an operator would: nothing of it gets to say
// anything.
func (s *demoSession) kill() error {
	if err := syscall.Kill(-s.pid(), syscall.SIGKILL); err != nil {
		return fmt.Errorf("kill the session: %w", err)
	}
	<-s.ended
	return nil
}

// sessionGrace is how long a session that was asked to end may take.
const sessionGrace = 5 * time.Second

// end asks the session to end, and kills it where it does not.
func (s *demoSession) end() error {
	if s.held != nil {
		_ = s.held.Close() // if this fails, the session is killed below
	}
	_ = syscall.Kill(s.pid(), syscall.SIGINT) // fails only if it has ended
	select {
	case <-s.ended:
		_ = syscall.Kill(-s.pid(), syscall.SIGKILL) // what it left behind, if anything
		return nil
	case <-time.After(sessionGrace):
		return s.kill()
	}
}

// failure is the error that the session ended with, or nil.
func (s *demoSession) failure() error {
	if s.err == nil {
		return nil
	}
	var exit *exec.ExitError
	if !errors.As(s.err, &exit) {
		return fmt.Errorf("the session: %w", s.err)
	}
	return fmt.Errorf("the session ended with %s: %s", exit, bytes.TrimSpace(s.output.Bytes()))
}

// firstLineOf returns a channel that is closed at the first line of out, or at its end.
func firstLineOf(out io.Reader) <-chan struct{} {
	busy := make(chan struct{})
	go func() {
		defer close(busy)
		_, _ = bufio.NewReader(out).ReadString('\n') // the end of the session shows elsewhere
	}()
	return busy
}
