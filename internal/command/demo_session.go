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
	// start starts a session. Its answer to the prompt hang may take as long as it
	// likes, since the session is killed amid it; "" for no such prompt.
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
	busy   <-chan struct{} // closed once it is amid an answer; nil where it does not tell
	// headStart is how long it is given to be at an answer, from when that was seen.
	headStart time.Duration
	seen      time.Time
	ended     chan struct{} // closed once it has ended, with err set
	err       error
}

// startSession starts the command. Its end is known by s.ended.
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

// await follows the process to its end.
func (s *demoSession) await() *demoSession {
	go func() {
		defer close(s.ended)
		s.err = s.cmd.Wait()
	}()
	return s
}

func (s *demoSession) pid() int { return s.cmd.Process.Pid }

// isBusy reports whether the session is amid the answer to what was delivered.
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
		_ = s.held.Close() // it reads the end of its input then, and is killed otherwise
	}
	_ = syscall.Kill(s.pid(), syscall.SIGINT) // likewise
	select {
	case <-s.ended:
		_ = syscall.Kill(-s.pid(), syscall.SIGKILL) // what it has left behind, if anything
		return nil
	case <-time.After(sessionGrace):
		return s.kill()
	}
}

// failure is why a session ended that should have ended well, or nil.
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

// firstLineOf is closed once out has brought a line, or its end.
func firstLineOf(out io.Reader) <-chan struct{} {
	busy := make(chan struct{})
	go func() {
		defer close(busy)
		_, _ = bufio.NewReader(out).ReadString('\n') // the end of the session shows elsewhere
	}()
	return busy
}
