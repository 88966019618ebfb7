package run_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/orchestrate/run"
)

// recorded opens a copy of a run that the real command made.
func recorded(t testing.TB, name string) *run.Run {
	t.Helper()
	dir := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.CopyFS(dir, os.DirFS(filepath.Join("testdata", name))))
	return open(t, dir)
}

func open(t testing.TB, dir string) *run.Run {
	t.Helper()
	r, err := run.Open(dir)
	require.NoError(t, err)
	return r
}

func state(t testing.TB, r *run.Run, cache string) run.State {
	t.Helper()
	s, err := r.State(cache)
	require.NoError(t, err)
	return s
}

func TestWaiting(t *testing.T) {
	r := recorded(t, "waiting")
	assert.Equal(t, "33b9f9f62d7cd5ab78a417d87b1f4486", r.Proof())
	s := state(t, r, "")
	assert.Equal(t, run.Waiting, s.Status)
	assert.Equal(t, 12, s.LastSeq)
	assert.Equal(t, []int{1, 1}, []int{s.ResolvedOK, s.ResolvedError})
	assert.Nil(t, s.Failure)
	var kinds []string
	for _, p := range s.Pending {
		kinds = append(kinds, p.Kind)
	}
	assert.Equal(t, []string{"agent", "skill", "my-kind", "breakpoint", "breakpoint", "sleep", "orchestrator_task"}, kinds)
	assert.Equal(t, run.Effect{
		ID: "01M7ZXJS812DKS6RC0NMCSGPE8", Seq: 6, InvocationKey: "p1:S000003:review", StepID: "S000003", TaskID: "review", Kind: "agent", Label: "agent",
		Labels: []string{"agent"}, TaskDefRef: "tasks/01M7ZXJS812DKS6RC0NMCSGPE8/task.json", RequestedAt: s.Pending[0].RequestedAt,
	}, s.Pending[0])
	for id, want := range map[string]run.EffectStatus{
		"01M7ZXJM26ZT7MB9Y1KYCRH9YV": run.ResolvedOK, "01M7ZXJPCQYAKACQY2BQ57ECR2": run.ResolvedError, s.Pending[6].ID: run.Requested, "01M7ZX": run.Unknown, "": run.Unknown,
	} {
		got, err := s.Effect(id)
		require.NoError(t, err)
		assert.Equal(t, want, got, id)
	}
}

func TestCompleted(t *testing.T) {
	s := state(t, recorded(t, "completed"), "")
	assert.Equal(t, run.Completed, s.Status)
	assert.Empty(t, s.Pending)
}

func TestFailed(t *testing.T) {
	s := state(t, recorded(t, "failed"), "")
	assert.Equal(t, run.Failed, s.Status)
	require.NotNil(t, s.Failure)
	assert.Equal(t, "2026-11-21T20:43:34.883Z", s.Failure.At.Format("2006-01-02T15:04:05.999Z07:00"))
	s.Failure.At = time.Time{}
	assert.Equal(t, run.Failure{
		Seq: 6, Name: "TypeError", Message: "no more é", Stack: "TypeError: no more é\n    at process (file:///srv/process.mjs:12:42)",
	}, *s.Failure)
}

// part is a task without the members that all tasks have.
func part(t testing.TB, r *run.Run, id string) run.Task {
	t.Helper()
	task, err := r.Task(id)
	require.NoError(t, err)
	assert.Equal(t, id, task.EffectID)
	assert.NotEmpty(t, task.Raw)
	for _, s := range []*string{&task.EffectID, &task.TaskID, &task.StepID, &task.InvocationKey} {
		assert.NotEmpty(t, *s)
		*s = ""
	}
	task.Raw = nil
	return task
}

func TestTasks(t *testing.T) {
	r := recorded(t, "waiting")
	assert.Equal(t, run.Task{
		Kind: "node", Title: "Greet", Description: "says hello", Labels: []string{"a", "b"}, Inputs: []byte("{\n    \"n\": 1\n  }"),
		Node: &run.Node{Entry: "./greet.js", Args: []string{"Ada"}, Cwd: ".", Env: map[string]string{"WHO": "Ada"}, Timeout: 1500 * time.Millisecond},
	}, part(t, r, "01M7ZXJM26ZT7MB9Y1KYCRH9YV"))
	assert.Equal(t, run.Task{
		Kind: "shell", Title: "Check", Inputs: []byte("{}"),
		Shell: &run.Shell{Command: "npm test -- --run", Cwd: ".", ExitCode: 3, Timeout: time.Minute},
	}, part(t, r, "01M7ZXJPCQYAKACQY2BQ57ECR2"))

	var tasks []run.Task
	for _, p := range state(t, r, "").Pending {
		tasks = append(tasks, part(t, r, p.ID))
	}
	require.NotNil(t, tasks[0].Agent)
	assert.Equal(t, "general-purpose", tasks[0].Agent.Name)
	assert.JSONEq(t, `{"role":"reviewer","task":"Review the change","instructions":["be brief"],"outputFormat":"JSON"}`, string(tasks[0].Agent.Prompt))
	assert.JSONEq(t, `{"type":"object","required":["ok"]}`, string(tasks[0].Agent.OutputSchema))
	assert.JSONEq(t, `{"model":"m-1"}`, string(tasks[0].Execution))
	assert.Equal(t, "code-review", tasks[1].Skill.Name)
	assert.JSONEq(t, `{"path":"src"}`, string(tasks[1].Skill.Context))
	assert.Equal(t, run.Task{Kind: "my-kind", Title: "Own", Inputs: []byte("{}")}, tasks[2])
	assert.Equal(t, "Go on?", tasks[3].Breakpoint.Question)
	assert.JSONEq(t, `["yes","no"]`, string(tasks[3].Breakpoint.Options))
	b := tasks[4].Breakpoint
	assert.Equal(t, []string{"Ship?", "Ship gate", "single", "t", `"owner"`}, []string{b.Question, b.Title, b.Strategy, b.Tags[0], string(b.Expert)})
	assert.JSONEq(t, `["ship","hold"]`, string(b.Options))
	assert.JSONEq(t, `{"files":["a.go"]}`, string(b.Context))
	assert.Equal(t, run.Sleep{Until: time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC), ISO: "2100-01-01T00:00:00.000Z"}, *tasks[5].Sleep)
	assert.JSONEq(t, `{"prompt":"do it","processId":"sub"}`, string(tasks[6].Orchestrator.Payload))
}

// Task refuses ids that lead out of the run's folder.
func TestTaskStaysInside(t *testing.T) {
	r := recorded(t, "waiting")
	for _, id := range []string{"", ".", "..", "../journal", "a/b", `a\b`, "/", "a\x00", "none", ".hidden"} {
		_, err := r.Task(id)
		require.ErrorIs(t, err, run.ErrNoTask, "%q", id)
	}
	id := "01M7ZXJS812DKS6RC0NMCSGPE8"
	for text, want := range map[string]string{
		"":                                    "task.json",
		"[]":                                  "not a JSON object",
		`{"inputsRef":"../../../etc/passwd"}`: "leads out of the run",
		`{"inputsRef":"/etc/passwd"}`:         "leads out of the run",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(r.Dir(), "tasks", id, "task.json"), []byte(text), 0o600))
		_, err := r.Task(id)
		require.ErrorIs(t, err, run.ErrCorrupt, text)
		require.ErrorContains(t, err, want)
	}
}

// A process may write any task, since babysitter does not check it.
func TestOddTasks(t *testing.T) {
	for text, want := range map[string]run.Task{
		`{}`:                         {},
		`{"kind":5,"labels":"x"}`:    {},
		`{"kind":"agent","agent":7}`: {Kind: "agent", Agent: &run.Agent{}},
		`{"kind":"agent","agent":{"prompt":"do"}}`: {Kind: "agent", Agent: &run.Agent{Prompt: []byte(`"do"`)}},
		`{"kind":"node","node":{"args":[1,"a"],"env":{"A":1,"B":"b"},"timeoutMs":"x"}}`: {
			Kind: "node", Node: &run.Node{Args: []string{"a"}, Env: map[string]string{"B": "b"}},
		},
		`{"kind":"breakpoint"}`: {Kind: "breakpoint", Breakpoint: &run.Breakpoint{Question: "breakpoint"}},
		`{"kind":"breakpoint","breakpoint":{"payload":"which one"}}`: {Kind: "breakpoint", Breakpoint: &run.Breakpoint{Question: "breakpoint", Payload: []byte(`"which one"`)}},
		`{"kind":"sleep","metadata":{"targetEpochMs":1000}}`: {
			Kind: "sleep", Metadata: []byte(`{"targetEpochMs":1000}`), Sleep: &run.Sleep{Until: time.Unix(1, 0).UTC()},
		},
		`{"kind":"sleep","sleep":{"iso":"2100-01-01T00:00:00Z"}}`: {
			Kind: "sleep", Sleep: &run.Sleep{Until: time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC), ISO: "2100-01-01T00:00:00Z"},
		},
		`{"kind":"orchestrator_task","orchestratorTask":{"payload":[1],"resumeCommand":"go"}}`: {
			Kind: "orchestrator_task", Orchestrator: &run.Orchestrator{Payload: []byte("[1]"), ResumeCommand: "go"},
		},
	} {
		dir := write(t, runJSON)
		require.NoError(t, os.MkdirAll(filepath.Join(dir, "tasks", "e"), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(dir, "tasks", "e", "task.json"), []byte(text), 0o600))
		task, err := open(t, dir).Task("e")
		require.NoError(t, err, text)
		assert.Equal(t, text, string(task.Raw))
		task.Raw = nil
		assert.Equal(t, want, task, text)
	}
}
