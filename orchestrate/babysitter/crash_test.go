package babysitter

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// killed runs the CLI and kills it when the run's folder has changed that many times. It
// reports whether the CLI was still running.
func killed(t *testing.T, c *CLI, dir string, changes int, value string, args ...string) bool {
	t.Helper()
	cmd := exec.Command(c.Command[0], append(c.Command[1:], args...)...)
	if value != "" {
		in, err := os.CreateTemp(t.TempDir(), "")
		require.NoError(t, err)
		defer in.Close()
		_, err = in.WriteString(value)
		require.NoError(t, err)
		_, err = in.Seek(0, 0)
		require.NoError(t, err)
		cmd.Stdin = in
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	before := listing(t, dir)
	require.NoError(t, cmd.Start())
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	for seen := 0; seen < changes; {
		select {
		case <-done:
			return false
		default:
		}
		if now := listing(t, dir); now != before {
			before = now
			seen++
		}
	}
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // it may just have ended
	<-done
	return true
}

// listing are the names in the run's folder.
func listing(t *testing.T, dir string) string {
	t.Helper()
	all := ""
	_ = filepath.WalkDir(dir, func(path string, _ os.DirEntry, _ error) error { // names come and go
		all += path + "\n"
		return nil
	})
	return all
}

// The CLI is killed at each step of a post or an iteration in turn. Whatever it left, the
// next calls succeed, and each effect has one result.
func TestKilledCLI(t *testing.T) {
	c, h := real(t)
	if testing.Short() {
		t.Skip("it takes half a minute")
	}
	for changes := 1; ; changes++ {
		dir := newRun(t, c, "passes.mjs", "")
		iterating := killed(t, c, dir, changes, "", "run:iterate", dir, "--json")
		it, err := c.Iterate(t.Context(), opened(t, dir))
		require.NoError(t, err, "killed after %d changes", changes)
		require.Len(t, it.NextActions, 1)
		effect := it.NextActions[0].Effect

		posting := killed(t, c, dir, changes, `"first"`, "task:post", dir, effect, "--status", "ok", "--value", "-", "--json")
		err = c.Post(t.Context(), opened(t, dir), effect, Result{Value: []byte(`"second"`)})
		output := `"second"`
		if err != nil {
			require.ErrorIs(t, err, ErrResolved, "killed after %d changes", changes)
			output = `"first"`
		}
		assert.Equal(t, 1, results(t, dir))
		assert.Equal(t, output+"\n", ended(t, c, dir))
		if !iterating && !posting {
			t.Logf("%d steps; %s", changes, h.all())
			return
		}
	}
}

// The same holds for calls that heartbeat gives up at any moment.
func TestKilledWhilePosting(t *testing.T) {
	c, _ := real(t)
	if testing.Short() {
		t.Skip("it takes half a minute")
	}
	for late := 100 * time.Millisecond; late < 600*time.Millisecond; late += 100 * time.Millisecond {
		dir, effect := iterated(t, c, "passes.mjs")
		impatient := *c
		impatient.patience = float64(late) / float64(postTimeout) / longer
		impatient.Note = nil
		_ = impatient.Post(t.Context(), opened(t, dir), effect, Result{Value: []byte(`"first"`)}) // whatever comes of it
		err := c.Post(t.Context(), opened(t, dir), effect, Result{Value: []byte(`"second"`)})
		if err != nil {
			require.ErrorIs(t, err, ErrResolved)
		}
		assert.Equal(t, 1, results(t, dir))
		ended(t, c, dir)
	}
}
