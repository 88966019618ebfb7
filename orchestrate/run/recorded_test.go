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

func state(t testing.TB, r *run.Run) run.State {
	t.Helper()
	s, err := r.State()
	require.NoError(t, err)
	return s
}

func TestWaiting(t *testing.T) {
	r := recorded(t, "waiting")
	assert.Equal(t, "33b9f9f62d7cd5ab78a417d87b1f4486", r.Proof())
	s := state(t, r)
	assert.Equal(t, run.Waiting, s.Status)
	assert.Equal(t, 12, s.LastSeq)
	assert.Nil(t, s.Failure)
	var kinds []string
	for _, p := range s.Pending {
		kinds = append(kinds, p.Kind)
	}
	assert.Equal(t, []string{"agent", "skill", "my-kind", "breakpoint", "breakpoint", "sleep", "orchestrator_task"}, kinds)
	assert.Equal(t, run.Effect{
		ID: "01M7ZXJS812DKS6RC0NMCSGPE8", Seq: 6, Kind: "agent", Label: "agent", RequestedAt: s.Pending[0].RequestedAt,
	}, s.Pending[0])
	for id, want := range map[string]run.EffectStatus{
		"01M7ZXJM26ZT7MB9Y1KYCRH9YV": run.ResolvedOK, "01M7ZXJPCQYAKACQY2BQ57ECR2": run.ResolvedError, s.Pending[6].ID: run.Requested, "01M7ZX": run.Unknown, "": run.Unknown,
	} {
		assert.Equal(t, want, s.Effect(id), id)
	}
}

func TestCompleted(t *testing.T) {
	s := state(t, recorded(t, "completed"))
	assert.Equal(t, run.Completed, s.Status)
	assert.Empty(t, s.Pending)
}

func TestFailed(t *testing.T) {
	s := state(t, recorded(t, "failed"))
	assert.Equal(t, run.Failed, s.Status)
	require.NotNil(t, s.Failure)
	assert.Equal(t, run.Failure{
		Seq: 6, Name: "TypeError", Message: "no more é", Stack: "TypeError: no more é\n    at process (file:///srv/process.mjs:12:42)",
	}, *s.Failure)
}

func TestTasks(t *testing.T) {
	r := recorded(t, "waiting")
	task := func(id string) run.Task {
		task, err := r.Task(id)
		require.NoError(t, err)
		assert.NotEmpty(t, task.Raw)
		assert.NotEmpty(t, task.StepID)
		task.Raw, task.StepID = nil, ""
		return task
	}
	assert.Equal(t, run.Task{Kind: "node", Title: "Greet", Command: &run.Command{
		Argv: []string{"node", "./greet.js", "Ada"}, Cwd: ".", Env: []string{"WHO=Ada"}, Timeout: 1500 * time.Millisecond,
	}}, task("01M7ZXJM26ZT7MB9Y1KYCRH9YV"))
	assert.Equal(t, run.Task{Kind: "shell", Title: "Check", Command: &run.Command{
		Argv: []string{"sh", "-c", "npm test -- --run"}, Cwd: ".", Success: 3, Timeout: time.Minute,
	}}, task("01M7ZXJPCQYAKACQY2BQ57ECR2"))
	var tasks []run.Task
	for _, p := range state(t, r).Pending {
		tasks = append(tasks, task(p.ID))
	}
	assert.Equal(t, run.Task{Kind: "my-kind", Title: "Own"}, tasks[2])
	assert.Equal(t, []any{"Go on?", []string{"yes", "no"}}, []any{tasks[3].Question, tasks[3].Choices})
	assert.Equal(t, []any{"Ship?", []string{"ship", "hold"}}, []any{tasks[4].Question, tasks[4].Choices})
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
		`{"kind":"agent","agent":7}`: {Kind: "agent"},
		`{"kind":"node","node":{"args":[1,"a"]}}`: {Kind: "node"},
		`{"kind":"shell","shell":[]}`:             {Kind: "shell"},
		`{"kind":"node","node":{"entry":"x","args":[1,"a",true],"env":{"A":8080,"B":null},"timeoutMs":"5000"}}`: {
			Kind: "node", Command: &run.Command{Argv: []string{"node", "x", "1", "a", "true"}, Env: []string{"A=8080"}},
		},
		`{"kind":"shell","shell":{"command":"x","timeoutMs":true,"expectedExitCode":"1"}}`: {
			Kind: "shell", Command: &run.Command{Argv: []string{"sh", "-c", "x"}},
		},
		`{"kind":"shell","shell":{"command":"x","timeoutMs":9007199254740991}}`: {
			Kind: "shell", Command: &run.Command{Argv: []string{"sh", "-c", "x"}, Timeout: 36500 * 24 * time.Hour},
		},
		`{"kind":"breakpoint"}`: {Kind: "breakpoint", Question: "breakpoint"},
		`{"kind":"breakpoint","breakpoint":{"payload":"which one"}}`: {Kind: "breakpoint", Question: "breakpoint"},
		`{"kind":"breakpoint","metadata":{"payload":null},"breakpoint":{"payload":{"question":"q","options":[{"id":"a","label":"b"},1]}}}`: {
			Kind: "breakpoint", Question: "q", Choices: nil,
		},
		`{"kind":"breakpoint","breakpoint":{"payload":{"question":"q","options":[{"id":"a","label":"b"},1]}}}`: {
			Kind: "breakpoint", Question: "q", Choices: []string{"a", "b"},
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
