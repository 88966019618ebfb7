package orchestrate

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"heartbeat/orchestrate/babysitter"
	"heartbeat/orchestrate/run"
)

const (
	// executeTimeout is what a task has that names no other, as with the SDK.
	executeTimeout = 15 * time.Minute
	// executeGrace is how long a command that is to end may take.
	executeGrace = 5 * time.Second
	// maxOutput bounds what is kept of what a command prints.
	maxOutput = 16 << 20
)

// CheckExecute says which of the kinds a step cannot carry out itself.
func CheckExecute(kinds []string) error {
	for _, kind := range kinds {
		if kind != "node" && kind != "shell" {
			return fmt.Errorf("--execute %s: node and shell can be carried out here", strings.Join(kinds, ","))
		}
	}
	return nil
}

// execute runs a task that is a command, and posts what it printed, or how it
// failed. A kill before that has the next step run it again.
func (s *step) execute(ctx context.Context, w want) (posted bool, err error) {
	task, err := s.Run.Task(w.Effect)
	if err != nil {
		return false, err
	}
	c, ok := s.commandOf(task)
	if !ok {
		return s.posted(w.Effect, s.CLI.PostError(ctx, s.Run.Dir(), w.Effect, babysitter.Failure{
			Name: "ExecutionError", Message: "the task names no command",
		}, babysitter.Attachments{}))
	}
	began := time.Now()
	ran := c.run(ctx)
	if ctx.Err() != nil {
		return false, context.Cause(ctx) // somebody else runs it again
	}
	with := babysitter.Attachments{StartedAt: began, FinishedAt: time.Now()}
	if ran.failure != "" {
		data, err := json.Marshal(map[string]any{"exitCode": ran.status, "stdout": ran.out.String(), "stderr": ran.err.String()})
		if err != nil {
			return false, err
		}
		return s.posted(w.Effect, s.CLI.PostError(ctx, s.Run.Dir(), w.Effect, babysitter.Failure{
			Name: "ExecutionError", Message: ran.failure, Data: data,
		}, with))
	}
	value, err := json.Marshal(ran.out.String())
	if err != nil {
		return false, err
	}
	return s.posted(w.Effect, s.CLI.PostOK(ctx, s.Run.Dir(), w.Effect, value, with))
}

// command is what a task has us run.
type command struct {
	argv    []string
	dir     string
	env     []string
	timeout time.Duration
	success int
}

// commandOf is the command of a task, ok is false where it has none. Paths are
// relative to the project, which has the run in .a5c/runs.
func (s *step) commandOf(t run.Task) (c command, ok bool) {
	project := filepath.Dir(filepath.Dir(filepath.Dir(s.Run.Dir())))
	c.timeout = executeTimeout
	at := func(cwd string) string {
		if filepath.IsAbs(cwd) {
			return cwd
		}
		return filepath.Join(project, cwd)
	}
	switch {
	case t.Shell != nil && t.Shell.Command != "":
		c.argv, c.dir, c.success = []string{"sh", "-c", t.Shell.Command}, at(t.Shell.Cwd), t.Shell.ExitCode
		if t.Shell.Timeout > 0 {
			c.timeout = t.Shell.Timeout
		}
	case t.Node != nil && t.Node.Entry != "":
		c.argv, c.dir = append([]string{"node", t.Node.Entry}, t.Node.Args...), at(t.Node.Cwd)
		for name, value := range t.Node.Env {
			c.env = append(c.env, name+"="+value)
		}
		if t.Node.Timeout > 0 {
			c.timeout = t.Node.Timeout
		}
	default:
		return c, false
	}
	return c, true
}

// outcome is how a command ended.
type outcome struct {
	out, err bounded
	status   int    // -1 where it has none
	failure  string // "" where it ended as it should
}

func (c command) run(ctx context.Context) (o outcome) {
	ctx, stop := context.WithTimeout(ctx, c.timeout)
	defer stop()
	cmd := exec.CommandContext(ctx, c.argv[0], c.argv[1:]...)
	cmd.Dir, cmd.Env = c.dir, append(os.Environ(), c.env...)
	cmd.Stdout, cmd.Stderr = &o.out, &o.err
	// Its children end with it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = executeGrace
	err := cmd.Run()
	if cmd.Process != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // mostly nobody is left
	}
	o.status = -1
	if cmd.ProcessState != nil {
		o.status = cmd.ProcessState.ExitCode()
	}
	var exit *exec.ExitError
	switch {
	case ctx.Err() == context.DeadlineExceeded:
		o.failure = fmt.Sprintf("it was ended after %v", c.timeout)
	case err != nil && !errors.As(err, &exit):
		o.failure = err.Error()
	case o.status != c.success:
		o.failure = fmt.Sprintf("it ended with status %d, and not %d", o.status, c.success)
	}
	return o
}

// bounded keeps the beginning of what is written.
type bounded struct{ bytes.Buffer }

func (b *bounded) Write(p []byte) (int, error) {
	if rest := maxOutput - b.Len(); rest > 0 {
		b.Buffer.Write(p[:min(rest, len(p))])
	}
	return len(p), nil
}
