package babysitter

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// anotherNode is a live process that may be the CLI.
func anotherNode(t *testing.T) int {
	t.Helper()
	cmd := exec.Command("node", "-e", "console.log(1); setInterval(() => {}, 1000)")
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	_, err = out.Read(make([]byte, 1)) // by then it has its name
	require.NoError(t, err)
	return cmd.Process.Pid
}

func lockFor(t *testing.T, dir, content string) string {
	t.Helper()
	path := filepath.Join(dir, "run.lock")
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	return path
}

func TestRunLockedByAnother(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("the CLI waits for ten seconds, twice")
	}
	c, _ := real(t)
	c.maxWait = time.Nanosecond // the CLI waits by itself
	dir, effect := iterated(t, c, "passes.mjs")
	pid := anotherNode(t)
	lock := lockFor(t, dir, fmt.Sprintf(`{"pid":%d,"owner":"somebody","acquiredAt":"2026-01-01T00:00:00.000Z"}`, pid))
	_, err := c.Iterate(t.Context(), opened(t, dir))
	assert.ErrorIs(t, err, ErrLocked)
	assert.ErrorContains(t, err, fmt.Sprintf("already held by pid %d", pid))
	assert.ErrorIs(t, c.Post(t.Context(), opened(t, dir), effect, Result{Value: []byte(`1`)}), ErrLocked)
	_, err = c.Repair(t.Context(), opened(t, dir))
	assert.ErrorIs(t, err, ErrLocked)
	assert.FileExists(t, lock)
}

func TestLocksThatAreNobodys(t *testing.T) {
	t.Parallel()
	c, h := real(t)
	dir, effect := iterated(t, c, "passes.mjs")
	other := exec.Command("sleep", "600")
	require.NoError(t, other.Start())
	defer func() {
		_ = other.Process.Kill()
		_ = other.Wait()
	}()
	for content, says := range map[string]string{
		"":             "nothing in it says whose it is",
		"{\x00\x00":    "nothing in it says whose it is",
		"null":         "nothing in it says whose it is",
		`{"pid":"no"}`: "nothing in it says whose it is",
		fmt.Sprintf(`{"pid":%d,"owner":"before the boot"}`, other.Process.Pid): "its number is that of sleep",
	} {
		h.notes = nil
		lock := lockFor(t, dir, content)
		it, err := c.Iterate(t.Context(), opened(t, dir))
		require.NoError(t, err, content)
		assert.Equal(t, effect, it.NextActions[0].Effect)
		assert.Contains(t, h.all(), says, content)
		assert.NoFileExists(t, lock)
	}
	h.notes = nil
	gone := exec.Command("true")
	require.NoError(t, gone.Run())
	lockFor(t, dir, fmt.Sprintf(`{"pid":%d,"owner":"killed"}`, gone.Process.Pid))
	_, err := c.Iterate(t.Context(), opened(t, dir))
	require.NoError(t, err, "this one the CLI removes")
	assert.Empty(t, h.all())
}

func TestDamagedJournal(t *testing.T) {
	t.Parallel()
	c, _ := real(t)
	for name, damage := range map[string]func(t *testing.T, journal string, files []string){
		"unparsable": func(t *testing.T, _ string, files []string) {
			require.NoError(t, os.WriteFile(files[1], []byte("{"), 0o600))
		},
		"gap": func(t *testing.T, journal string, files []string) {
			require.NoError(t, os.Rename(files[1], filepath.Join(journal, "000005."+filepath.Base(files[1])[7:])))
		},
		"stray file": func(t *testing.T, journal string, _ []string) {
			require.NoError(t, os.WriteFile(filepath.Join(journal, "notes.json"), []byte("{}"), 0o600))
		},
		"twice the same": func(t *testing.T, journal string, files []string) {
			b, err := os.ReadFile(files[1])
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(filepath.Join(journal, "000003.7ZZZZZZZZZZZZZZZZZZZZZZZZZ.json"), b, 0o600))
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir, effect := iterated(t, c, "passes.mjs")
			journal := filepath.Join(dir, "journal")
			files, err := filepath.Glob(filepath.Join(journal, "*.json"))
			require.NoError(t, err)
			require.Len(t, files, 2)
			damage(t, journal, files)

			_, err = c.Iterate(t.Context(), opened(t, dir))
			assert.ErrorContains(t, err, "run:repair-journal")
			assert.ErrorContains(t, c.Post(t.Context(), opened(t, dir), effect, Result{Value: []byte("1")}), "run:repair-journal")

			repaired, err := c.Repair(t.Context(), opened(t, dir))
			require.NoError(t, err)
			assert.DirExists(t, repaired.Backup)
			assert.GreaterOrEqual(t, repaired.Kept, 1)
			it, err := c.Iterate(t.Context(), opened(t, dir))
			require.NoError(t, err)
			require.Len(t, it.NextActions, 1)
			require.NoError(t, c.Post(t.Context(), opened(t, dir), it.NextActions[0].Effect, Result{Value: []byte("1")}))
			assert.Equal(t, "1\n", ended(t, c, dir))
		})
	}
}

func TestRepairInterruptedBetweenItsRenames(t *testing.T) {
	c, h := real(t)
	dir, effect := iterated(t, c, "passes.mjs")
	require.NoError(t, os.Rename(filepath.Join(dir, "journal"), filepath.Join(dir, "journal.repaired.1790000000000")))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "journal.bak.1790000000000"), 0o700))
	it, err := c.Iterate(t.Context(), opened(t, dir))
	require.NoError(t, err)
	assert.Equal(t, effect, it.NextActions[0].Effect)
	assert.Contains(t, h.all(), "finished the repair of its journal")
}

func TestLeftoversOfAKilledWriter(t *testing.T) {
	c, h := real(t)
	dir, effect := iterated(t, c, "passes.mjs")
	gone := exec.Command("true")
	require.NoError(t, gone.Run())
	left := filepath.Join(dir, "journal", fmt.Sprintf("000003.01ARZ3NDEKTSV4RRFFQ69G5FAV.json.tmp-%d-1790000000000", gone.Process.Pid))
	require.NoError(t, os.WriteFile(left, []byte("{"), 0o600))
	require.NoError(t, c.Post(t.Context(), opened(t, dir), effect, Result{Value: []byte("1")}))
	assert.Contains(t, h.all(), "which a killed writer left")
	assert.Equal(t, "1\n", ended(t, c, dir), "without a gap in its journal")
}

func TestCreateRefusesARunThatIsThere(t *testing.T) {
	c, _ := real(t)
	dir, effect := iterated(t, c, "passes.mjs")
	before, err := os.ReadFile(filepath.Join(dir, "run.json"))
	require.NoError(t, err)
	o := CreateOptions{ProcessID: "q", Entry: "testdata/process/passes.mjs", RunID: "r1", RunsDir: filepath.Dir(dir)}
	_, err = c.Create(t.Context(), o)
	assert.ErrorContains(t, err, "it is there already")
	after, err := os.ReadFile(filepath.Join(dir, "run.json"))
	require.NoError(t, err)
	assert.Equal(t, string(before), string(after))

	o.RunID = ""
	o.Prompt, o.NonInteractive = "--run-id r1", true
	created, err := c.Create(t.Context(), o)
	require.NoError(t, err)
	assert.NotEqual(t, dir, created.RunDir)
	metadata, err := os.ReadFile(filepath.Join(created.RunDir, "run.json"))
	require.NoError(t, err)
	assert.Contains(t, string(metadata), `"nonInteractive": true`)
	assert.Contains(t, string(metadata), `"prompt": "--run-id r1"`)
	it, err := c.Iterate(t.Context(), opened(t, dir))
	require.NoError(t, err)
	assert.Equal(t, effect, it.NextActions[0].Effect)
}

func TestCreateOfAProcessThatDoesNotLoad(t *testing.T) {
	c, _ := real(t)
	runs := t.TempDir()
	for _, entry := range []string{"testdata/process/broken.mjs", "testdata/process/gone.mjs", "testdata/process/broken.mjs#other", "testdata/process"} {
		_, err := c.Create(t.Context(), CreateOptions{ProcessID: "p", Entry: entry, RunsDir: runs})
		assert.ErrorContains(t, err, "process module", entry)
		left, err := os.ReadDir(runs)
		require.NoError(t, err)
		assert.Empty(t, left)
	}
}
