package babysitter

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"heartbeat/orchestrate/effect"
	runs "heartbeat/orchestrate/run"
)

// heard collects the notes of calls.
type heard struct {
	mu    sync.Mutex
	notes []string
}

func (h *heard) note(format string, args ...any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.notes = append(h.notes, fmt.Sprintf(format, args...))
}

func (h *heard) all() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return strings.Join(h.notes, "\n")
}

// real is the real CLI: what HEARTBEAT_BABYSITTER names, or the one on the PATH.
func real(t *testing.T) (*CLI, *heard) {
	t.Helper()
	command := strings.Fields(os.Getenv("HEARTBEAT_BABYSITTER"))
	if len(command) == 0 {
		if _, err := exec.LookPath("babysitter"); err != nil {
			t.Skip("there is no babysitter CLI: name one with HEARTBEAT_BABYSITTER")
		}
		command = []string{"babysitter"}
	}
	h := &heard{}
	// Other tests run on the machine beside this one.
	return &CLI{Command: command, Note: h.note, patience: 4}, h
}

// newRun makes a run of a process in testdata/process.
func newRun(t *testing.T, c *CLI, process, inputs string) string {
	t.Helper()
	o := CreateOptions{ProcessID: "p", Entry: "testdata/process/" + process, RunID: "r1", RunsDir: filepath.Join(t.TempDir(), ".a5c", "runs")}
	if inputs != "" {
		o.Inputs = []byte(inputs)
	}
	created, err := c.Create(t.Context(), o)
	require.NoError(t, err)
	require.Equal(t, "r1", created.RunID)
	return created.RunDir
}

// iterated is a run that waits for one effect.
func iterated(t *testing.T, c *CLI, process string) (dir, effect string) {
	t.Helper()
	dir = newRun(t, c, process, "")
	it, err := c.Iterate(t.Context(), opened(t, dir))
	require.NoError(t, err)
	require.Equal(t, Waiting, it.Status)
	require.Len(t, it.NextActions, 1)
	return dir, it.NextActions[0].Effect
}

// ended is how a run ended after another iteration.
func ended(t *testing.T, c *CLI, dir string) string {
	t.Helper()
	it, err := c.Iterate(t.Context(), opened(t, dir))
	require.NoError(t, err)
	require.Equal(t, Completed, it.Status)
	output, err := os.ReadFile(filepath.Join(dir, "state", "output.json"))
	require.NoError(t, err)
	return string(output)
}

// results is how many results the run's journal has.
func results(t *testing.T, dir string) int {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "journal", "*.json"))
	require.NoError(t, err)
	n := 0
	for _, file := range files {
		b, err := os.ReadFile(file)
		require.NoError(t, err)
		if strings.Contains(string(b), "EFFECT_RESOLVED") {
			n++
		}
	}
	return n
}

func TestRunFromBeginningToEnd(t *testing.T) {
	c, h := real(t)
	version, err := c.Version(t.Context())
	require.NoError(t, err)
	require.Equal(t, effect.MeasuredVersion, version)

	dir := newRun(t, c, "basic.mjs", `{"name":"Ada"}`)
	assert.Equal(t, runs.Created, stateOf(t, dir).Status)

	it, err := c.Iterate(t.Context(), opened(t, dir))
	require.NoError(t, err)
	assert.Equal(t, Waiting, it.Status)
	require.Len(t, it.NextActions, 1)
	a := it.NextActions[0]
	assert.Equal(t, "agent", a.Kind)
	assert.Equal(t, "greet", taskID(t, dir, a.Effect))
	assert.True(t, a.Until.IsZero())

	again, err := c.Iterate(t.Context(), opened(t, dir))
	require.NoError(t, err)
	require.Len(t, again.NextActions, 1)
	assert.Equal(t, a.Effect, again.NextActions[0].Effect)

	require.NoError(t, c.Post(t.Context(), opened(t, dir), a.Effect, Result{Value: []byte(`"good day"`)}))
	assert.Equal(t, runs.ResolvedOK, stateOf(t, dir).Effect(a.Effect))

	it, err = c.Iterate(t.Context(), opened(t, dir))
	require.NoError(t, err)
	assert.Equal(t, Completed, it.Status)
	assert.Equal(t, runs.Completed, stateOf(t, dir).Status)
	assert.Empty(t, h.all())
}

// stateOf is what the run's journal says.
func stateOf(t *testing.T, dir string) runs.State {
	t.Helper()
	r, err := runs.Open(dir)
	require.NoError(t, err)
	st, err := r.State()
	require.NoError(t, err)
	return st
}

// taskID is the process's name for the task of an effect.
func taskID(t *testing.T, dir, effect string) string {
	t.Helper()
	r, err := runs.Open(dir)
	require.NoError(t, err)
	task, err := r.Task(effect)
	require.NoError(t, err)
	return gjson.GetBytes(task.Raw, "taskId").Str
}
