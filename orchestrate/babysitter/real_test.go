package babysitter

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"heartbeat/orchestrate/babysitter/invocation"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
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
	return &CLI{Command: command, Note: h.note, Patience: 4}, h
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
	it, err := c.Iterate(t.Context(), dir)
	require.NoError(t, err)
	require.Equal(t, Waiting, it.Status)
	require.Len(t, it.NextActions, 1)
	return dir, it.NextActions[0].EffectID
}

// ended is how a run ended after another iteration.
func ended(t *testing.T, c *CLI, dir string) string {
	t.Helper()
	it, err := c.Iterate(t.Context(), dir)
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
	require.Equal(t, invocation.MeasuredVersion, version)

	dir := newRun(t, c, "basic.mjs", `{"name":"Ada"}`)
	s, err := c.Status(t.Context(), dir)
	require.NoError(t, err)
	assert.Equal(t, CreatedState, s.State)
	assert.Equal(t, "RUN_CREATED", s.LastEvent.Type)

	it, err := c.Iterate(t.Context(), dir)
	require.NoError(t, err)
	assert.Equal(t, Waiting, it.Status)
	assert.Equal(t, "agent-pending", it.Reason)
	assert.Equal(t, "r1", it.RunID)
	assert.Equal(t, "p", it.ProcessID)
	require.Len(t, it.NextActions, 1)
	a := it.NextActions[0]
	assert.Equal(t, "agent", a.Kind)
	assert.Equal(t, "greet", a.TaskID)
	assert.Equal(t, "greet", a.Label)
	assert.Equal(t, []string{"greet", "b"}, a.Labels)
	assert.Equal(t, "S000001", a.StepID)
	assert.Equal(t, "p:S000001:greet", a.InvocationKey)
	assert.False(t, a.RequestedAt.IsZero())
	assert.True(t, a.SleepUntil.IsZero())
	assert.FileExists(t, filepath.Join(dir, a.TaskDefRef))

	again, err := c.Iterate(t.Context(), dir)
	require.NoError(t, err)
	require.Len(t, again.NextActions, 1)
	assert.Equal(t, a.EffectID, again.NextActions[0].EffectID)

	require.NoError(t, c.PostOK(t.Context(), dir, a.EffectID, []byte(`"good day"`), Attachments{}))
	effects, err := c.Effects(t.Context(), dir)
	require.NoError(t, err)
	require.Len(t, effects, 1)
	assert.Equal(t, ResolvedOK, effects[0].Status)
	assert.False(t, effects[0].ResolvedAt.IsZero())

	it, err = c.Iterate(t.Context(), dir)
	require.NoError(t, err)
	assert.Equal(t, Completed, it.Status)
	assert.Regexp(t, "^[0-9a-f]{32}$", it.CompletionProof)
	s, err = c.Status(t.Context(), dir)
	require.NoError(t, err)
	assert.Equal(t, Completed, s.State)
	assert.Equal(t, it.CompletionProof, s.CompletionProof)
	assert.Empty(t, h.all())
}
