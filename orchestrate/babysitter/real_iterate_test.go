package babysitter

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	runs "heartbeat/orchestrate/run"
)

func TestAnswerAmidNoise(t *testing.T) {
	c, _ := real(t)
	dir, effect := iterated(t, c, "noisy.mjs")
	require.NoError(t, c.Post(t.Context(), opened(t, dir), effect, Result{Value: []byte(`1`)}))
	assert.Equal(t, "1\n", ended(t, c, dir))
}

func TestCLIThatAnswersAndStays(t *testing.T) {
	t.Parallel()
	c, h := real(t)
	c.patience = 1
	dir, _ := iterated(t, c, "timer.mjs")
	assert.Contains(t, h.all(), "iterate the run "+dir+": the CLI answered and kept running, so it was ended: the process keeps something open")
}

func TestProcessesThatGiveNoAnswer(t *testing.T) {
	t.Parallel()
	c, _ := real(t)
	for _, test := range []struct {
		process string
		kind    error
		says    string
	}{
		{"never.mjs", ErrOutput, "ended with status 0 without an answer: does the process end the program, or wait for a promise that is never settled?"},
		{"exits.mjs", ErrOutput, "ended with status 3 without an answer: does the process end the program"},
		{"rejects.mjs", ErrOutput, "Error: left alone"},
	} {
		t.Run(test.process, func(t *testing.T) {
			dir := newRun(t, c, test.process, "")
			for range 2 { // a lock that was left is no obstacle
				_, err := c.Iterate(t.Context(), opened(t, dir))
				assert.ErrorIs(t, err, test.kind)
				assert.ErrorContains(t, err, "iterate the run "+dir+": ")
				assert.ErrorContains(t, err, test.says)
			}
		})
	}
}

func TestModuleThatDoesNotLoad(t *testing.T) {
	c, _ := real(t)
	dir := newRun(t, c, "basic.mjs", "")
	metadata, err := os.ReadFile(filepath.Join(dir, "run.json"))
	require.NoError(t, err)
	for process, says := range map[string]string{
		"broken.mjs":  "Failed to load process module at ",
		"default.mjs": "one with a default export only is named with #default",
		"gone.mjs":    "Failed to load process module at ",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "run.json"), []byte(strings.ReplaceAll(string(metadata), "basic.mjs", process)), 0o600))
		_, err = c.Iterate(t.Context(), opened(t, dir))
		assert.ErrorContains(t, err, says, process)
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "run.json"), metadata, 0o600))
	it, err := c.Iterate(t.Context(), opened(t, dir))
	require.NoError(t, err, "nothing was written meanwhile")
	assert.Equal(t, Waiting, it.Status)
}

func TestFailedRun(t *testing.T) {
	c, _ := real(t)
	dir, effect := iterated(t, c, "throws.mjs")
	require.NoError(t, c.Post(t.Context(), opened(t, dir), effect, Result{Value: []byte(`null`)}))
	it, err := c.Iterate(t.Context(), opened(t, dir))
	require.NoError(t, err)
	assert.Equal(t, Failed, it.Status)
	st := stateOf(t, dir)
	assert.Equal(t, runs.Failed, st.Status)
	assert.Equal(t, "TypeError", st.Failure.Name)
	assert.Equal(t, "no good", st.Failure.Message)
	assert.Contains(t, st.Failure.Stack, "throws.mjs")
}

func TestParallelAndSleep(t *testing.T) {
	c, _ := real(t)
	dir := newRun(t, c, "parallel.mjs", "")
	it, err := c.Iterate(t.Context(), opened(t, dir))
	require.NoError(t, err)
	require.Len(t, it.NextActions, 3)
	for i, a := range it.NextActions {
		assert.Equal(t, []string{"a", "b", "c"}[i], taskID(t, dir, a.Effect))
	}

	var posting sync.WaitGroup
	errs := make([]error, 3)
	for i, a := range it.NextActions {
		posting.Go(func() {
			errs[i] = c.Post(t.Context(), opened(t, dir), a.Effect, Result{Value: []byte(`"` + taskID(t, dir, a.Effect) + `"`)})
		})
	}
	posting.Wait()
	require.NoError(t, errors.Join(errs...))
	assert.JSONEq(t, `["a","b","c"]`, ended(t, c, dir))

	dir = newRun(t, c, "sleeps.mjs", "")
	it, err = c.Iterate(t.Context(), opened(t, dir))
	require.NoError(t, err)
	require.Len(t, it.NextActions, 1)
	assert.Equal(t, "sleep", it.NextActions[0].Kind)
	assert.Equal(t, time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC), it.NextActions[0].Until.UTC())
}

func TestIterateAtTheSameTime(t *testing.T) {
	c, _ := real(t)
	dir := newRun(t, c, "basic.mjs", "")
	var iterating sync.WaitGroup
	its, errs := make([]Iteration, 4), make([]error, 4)
	for i := range its {
		iterating.Go(func() { its[i], errs[i] = c.Iterate(t.Context(), opened(t, dir)) })
	}
	iterating.Wait()
	require.NoError(t, errors.Join(errs...))
	for _, it := range its {
		require.Len(t, it.NextActions, 1)
		assert.Equal(t, its[0].NextActions[0].Effect, it.NextActions[0].Effect)
	}
}

func TestTimeoutEndsTheWholeFamily(t *testing.T) {
	t.Parallel()
	c, h := real(t)
	children := filepath.Join(t.TempDir(), "children")
	dir := newRun(t, c, "stuck.mjs", `{"children":"`+children+`"}`)
	c.patience = 0.06 // an iteration has 7.2 s, and then 21.6 s
	_, err := c.Iterate(t.Context(), opened(t, dir))
	assert.ErrorIs(t, err, ErrTimeout)
	assert.ErrorContains(t, err, "iterate the run "+dir+": no answer in time")
	assert.Contains(t, h.all(), "asked once more")

	b, err := os.ReadFile(children)
	require.NoError(t, err)
	for pid := range strings.FieldsSeq(string(b)) {
		n, err := strconv.Atoi(pid)
		require.NoError(t, err)
		assert.Eventually(t, func() bool { return dead(n) }, 5*time.Minute, 5*time.Millisecond, "process %d", n)
	}
}

// dead reports whether a process has ended. A process that nobody has waited for counts as
// ended: in a container that may last for ever.
func dead(pid int) bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return gone(pid) || err == nil && strings.Contains(string(stat), ") Z ")
}

func TestGivenUp(t *testing.T) {
	c, _ := real(t)
	scratch := t.TempDir()
	began, release := filepath.Join(scratch, "began"), filepath.Join(scratch, "go")
	dir := newRun(t, c, "slow.mjs", `{"began":"`+began+`","go":"`+release+`"}`)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		defer cancel()
		for !exists(began) {
			time.Sleep(5 * time.Millisecond)
		}
	}()
	_, err := c.Iterate(ctx, opened(t, dir))
	assert.ErrorIs(t, err, context.Canceled)
	assert.NotErrorIs(t, err, ErrTimeout)

	require.NoError(t, os.WriteFile(release, nil, 0o600))
	it, err := c.Iterate(t.Context(), opened(t, dir))
	require.NoError(t, err, "the lock of a killed CLI is no obstacle")
	assert.Equal(t, Waiting, it.Status)
}

func exists(path string) bool { _, err := os.Stat(path); return err == nil }

func TestEnvironmentOfAnotherSession(t *testing.T) {
	c, _ := real(t)
	for _, name := range telltales {
		t.Setenv(name, "/nowhere")
	}
	t.Setenv("BABYSITTER_SESSION_ID", "theirs")
	dir, _ := iterated(t, c, "basic.mjs")
	metadata, err := os.ReadFile(filepath.Join(dir, "run.json"))
	require.NoError(t, err)
	assert.NotContains(t, string(metadata), "theirs")
	assert.NoDirExists(t, "/nowhere")
}
