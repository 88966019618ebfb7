package orchestrate

import (
	"context"
	"encoding/json"
	"path/filepath"
	"time"

	"heartbeat/orchestrate/babysitter"
	"heartbeat/orchestrate/command"
	"heartbeat/orchestrate/run"
)

// executeTimeout is the time limit of a task that names none, as in the SDK.
const executeTimeout = 15 * time.Minute

// maxShown bounds, in bytes, how much of each output stream a failure quotes.
const maxShown = 1 << 20

// execute runs a task that is a command, and posts what it printed, or how it failed. If
// this process is killed before that, the next step runs the command again.
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
	ran := c.Run(ctx)
	if ctx.Err() != nil {
		return false, context.Cause(ctx) // the next step runs it again
	}
	with := babysitter.Attachments{StartedAt: began, FinishedAt: time.Now()}
	if ran.Failure != "" {
		data, err := json.Marshal(map[string]any{
			"exitCode": ran.Status, "stdout": beginning(ran.Stdout), "stderr": beginning(ran.Stderr), "cutOff": ran.Cut,
		})
		if err != nil {
			return false, err
		}
		return s.posted(w.Effect, s.CLI.PostError(ctx, s.Run.Dir(), w.Effect, babysitter.Failure{
			Name: "ExecutionError", Message: ran.Failure, Data: data,
		}, with))
	}
	value, err := json.Marshal(ran.Stdout)
	if err != nil {
		return false, err
	}
	return s.posted(w.Effect, s.CLI.PostOK(ctx, s.Run.Dir(), w.Effect, value, with))
}

// leave reports a command that another process is to carry out.
func (s *step) leave(w want) error {
	task, err := s.Run.Task(w.Effect)
	if err != nil {
		return err
	}
	c, _ := s.commandOf(task)
	s.report.Commands, s.report.Longest = append(s.report.Commands, w.Effect), max(s.report.Longest, c.Timeout)
	return nil
}

func beginning(s string) string { return s[:min(len(s), maxShown)] }

// commandOf is the command of a task; ok is false if it has none. Paths are relative to
// the project, or to the working directory if the run does not lie in a project.
func (s *step) commandOf(t run.Task) (c command.Command, ok bool) {
	c.Timeout = executeTimeout
	at := func(cwd string) string {
		if filepath.IsAbs(cwd) {
			return cwd
		}
		return filepath.Join(babysitter.Project(s.Run.Dir()), cwd)
	}
	switch {
	case t.Shell != nil && t.Shell.Command != "":
		c.Argv, c.Dir, c.Success = []string{"sh", "-c", t.Shell.Command}, at(t.Shell.Cwd), t.Shell.ExitCode
		if t.Shell.Timeout > 0 {
			c.Timeout = t.Shell.Timeout
		}
	case t.Node != nil && t.Node.Entry != "":
		c.Argv, c.Dir = append([]string{"node", t.Node.Entry}, t.Node.Args...), at(t.Node.Cwd)
		for name, value := range t.Node.Env {
			c.Env = append(c.Env, name+"="+value)
		}
		if t.Node.Timeout > 0 {
			c.Timeout = t.Node.Timeout
		}
	default:
		return c, false
	}
	return c, true
}
