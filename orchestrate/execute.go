package orchestrate

import (
	"context"
	"encoding/json"
	"path/filepath"
	"time"

	"heartbeat/orchestrate/babysitter"
	"heartbeat/orchestrate/run"
)

// executeTimeout is the time limit of a task that names none, as in the SDK.
const executeTimeout = 15 * time.Minute

// maxShown limits, in bytes, how much of each output stream a failure quotes.
const maxShown = 1 << 20

// execute runs a task that is a command, and posts its output or its failure. If this process is killed before
// that, the next step runs the command again.
func (s *step) execute(ctx context.Context, w want) (posted bool, err error) {
	c, err := s.commandOf(w)
	if err != nil {
		return false, err
	}
	if c == nil {
		return s.fail(ctx, w.Effect, "ExecutionError", "the task names no command")
	}
	result := babysitter.Result{StartedAt: time.Now()}
	ran := babysitter.Execute(ctx, *c)
	if ctx.Err() != nil {
		return false, context.Cause(ctx) // the next step runs it again
	}
	result.FinishedAt = time.Now()
	var said any = ran.Stdout
	switch {
	case ran.Failure != "":
		said = map[string]any{"exitCode": ran.Status, "stdout": end(ran.Stdout), "stderr": end(ran.Stderr), "cutOff": ran.Cut}
	case c.Silent:
		said = ""
	}
	text, err := json.Marshal(said)
	if err != nil {
		return false, err
	}
	if ran.Failure != "" {
		result.Failure = &babysitter.Failure{Name: "ExecutionError", Message: ran.Failure, Data: text}
	} else {
		result.Value = text
	}
	return s.post(ctx, w.Effect, result)
}

// leave reports a command that another process is to carry out.
func (s *step) leave(w want) error {
	c, err := s.commandOf(w)
	if err != nil {
		return err
	}
	limit := executeTimeout
	if c != nil {
		limit = c.Timeout
	}
	s.report.Commands, s.report.Longest = append(s.report.Commands, w.Effect), max(s.report.Longest, limit)
	return nil
}

func end(s string) string { return s[max(0, len(s)-maxShown):] }

// commandOf returns the command of an effect's task, or nil. Paths are relative to the project, or to the working
// directory if the run is in no project.
func (s *step) commandOf(w want) (*run.Command, error) {
	task, err := s.Run.Task(w.Effect)
	c := task.Command
	if err != nil || c == nil {
		return nil, err
	}
	if !filepath.IsAbs(c.Cwd) {
		c.Cwd = filepath.Join(babysitter.Project(s.Run.Dir()), c.Cwd)
	}
	if c.Timeout <= 0 {
		c.Timeout = executeTimeout
	}
	return c, nil
}
