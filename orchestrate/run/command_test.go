package run_test

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/orchestrate/run"
)

// command is the real babysitter command, with a working directory of its own.
type command struct {
	path string
	work string
}

// findCommand finds the command by HEARTBEAT_BABYSITTER or on the PATH, and skips the test if
// there is none.
func findCommand(t testing.TB) command {
	t.Helper()
	path := os.Getenv("HEARTBEAT_BABYSITTER")
	if path == "" {
		path, _ = exec.LookPath("babysitter")
	}
	if path == "" {
		t.Skip("set HEARTBEAT_BABYSITTER to the babysitter command, or put it on PATH")
	}
	return command{path, t.TempDir()}
}

// sdk is the path of the library that a process imports.
func (c command) sdk(t testing.TB) string {
	t.Helper()
	path, err := filepath.EvalSymlinks(c.path)
	require.NoError(t, err)
	for dir := filepath.Dir(path); dir != "/"; dir = filepath.Dir(dir) {
		for _, at := range []string{"dist/index.js", "node_modules/@a5c-ai/babysitter-sdk/dist/index.js"} {
			if index := filepath.Join(dir, at); fileExists(index) {
				return index
			}
		}
	}
	require.Fail(t, "no library beside the command", path)
	return ""
}

func fileExists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// run makes one call, and decodes its output into result unless that is nil. It reports
// whether the command succeeded.
func (c command) run(t testing.TB, result any, stdin string, args ...string) bool {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, c.path, append(args, "--json")...)
	cmd.Dir, cmd.Stdin = c.work, strings.NewReader(stdin)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + c.work}
	out, err := cmd.Output()
	require.NoError(t, ctx.Err(), "%v hangs", args)
	if err == nil && result != nil {
		require.NoError(t, json.Unmarshal(out, result), "%v: %s", args, out)
	}
	return err == nil
}

// listed is an effect as task:list shows it.
type listed struct {
	EffectID, StepID, Kind, Label, InputsRef string
	Status                                   run.EffectStatus
	RequestedAt                              time.Time
}

// standing is the output of run:status.
type standing struct {
	State                 run.Status
	CompletionProof       string
	LastEvent             struct{ Seq int }
	PendingEffectsSummary struct{ TotalPending int }
}

// agree compares the command with State. It reports whether the command read the journal.
func (c command) agree(t testing.TB, r *run.Run) bool {
	t.Helper()
	var status standing
	var list struct{ Tasks []listed }
	read := c.run(t, &status, "", "run:status", r.Dir())
	require.Equal(t, read, c.run(t, &list, "", "task:list", r.Dir()))
	s, err := r.State()
	if !read {
		require.ErrorIs(t, err, run.ErrCorrupt, "the command refuses this journal")
		return false
	}
	require.NoError(t, err, "the command reads this journal")
	assert.Equal(t, status.State, s.Status)
	assert.Equal(t, status.LastEvent.Seq, s.LastSeq)
	if s.Status == run.Completed {
		assert.Equal(t, status.CompletionProof, open(t, r.Dir()).Proof())
	}
	require.Len(t, s.Pending, status.PendingEffectsSummary.TotalPending)
	compare(t, list.Tasks, s)
	return true
}

func compare(t testing.TB, tasks []listed, s run.State) {
	t.Helper()
	pending := map[string]run.Effect{}
	last := 0
	for _, p := range s.Pending {
		assert.Greater(t, p.Seq, last, "in request order")
		pending[p.ID], last = p, p.Seq
	}
	for _, task := range tasks {
		assert.Equal(t, task.Status, s.Effect(task.EffectID))
		if task.Status == run.Requested {
			p := pending[task.EffectID]
			assert.Equal(t, []any{task.EffectID, task.Kind, task.Label, task.RequestedAt}, []any{p.ID, p.Kind, p.Label, p.RequestedAt})
		}
	}
	assert.Equal(t, run.Unknown, s.Effect("none"))
}
