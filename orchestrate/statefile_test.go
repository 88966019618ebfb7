package orchestrate_test

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/disk"
	"heartbeat/orchestrate"
)

func TestIDs(t *testing.T) {
	for _, id := range []string{"5310c11a-4804-4e5b-9d3c-000000000000", "a", "A_b.c-9", strings.Repeat("x", 128)} {
		_, err := orchestrate.StateFileAt("/d", id)
		assert.NoError(t, err, id)
	}
	for _, id := range []string{"", ".", "..", "a/../../evil", "/abs", "-x", ".hidden", "_x", "a b", "a\x00", "é", "a\n", `a"$(b)`, strings.Repeat("x", 129)} {
		_, err := orchestrate.StateFileAt("/d", id)
		assert.ErrorIs(t, err, orchestrate.ErrSessionID, "%q", id)
		assert.ErrorIs(t, orchestrate.ExportSession(filepath.Join(t.TempDir(), "env"), id), orchestrate.ErrSessionID, "%q", id)
	}
}

func TestFileIsOurs(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	f, err := orchestrate.StateFileAt(dir, "s")
	require.NoError(t, err)
	require.NoError(t, f.Delete(), "there is nothing to delete, not even a directory")
	assert.NoDirExists(t, dir)

	require.NoError(t, f.Write(orchestrate.NewState("", "secret", 256, noon)))
	for path, mode := range map[string]string{dir: "drwx------", f.Path(): "-rw-------"} {
		info, err := os.Stat(path)
		require.NoError(t, err)
		assert.Equal(t, mode, info.Mode().String())
	}
	s, err := f.Read()
	require.NoError(t, err)
	assert.Equal(t, "secret", s.Prompt)

	require.NoError(t, f.Delete())
	require.NoError(t, f.Delete())
	_, err = f.Read()
	require.ErrorIs(t, err, os.ErrNotExist)

	require.NoError(t, os.Symlink(filepath.Join(t.TempDir(), "elsewhere"), f.Path()))
	_, err = f.Read()
	require.ErrorIs(t, err, disk.ErrForeign)
}

func TestWhatTheFormatCannotHold(t *testing.T) {
	f, err := orchestrate.StateFileAt(t.TempDir(), "s")
	require.NoError(t, err)
	for _, s := range []orchestrate.State{{RunID: "a\nactive: true"}, {StartedAt: "\n"}, {LastIterationAt: "\n"}, {Iteration: -1}, {MaxIterations: -1}} {
		assert.Error(t, f.Write(s))
	}
	assert.NoFileExists(t, f.Path())
}

func TestDir(t *testing.T) {
	t.Chdir(t.TempDir())
	here, err := os.Getwd()
	require.NoError(t, err)
	for _, tt := range []struct {
		flag string
		env  map[string]string
		want string
	}{
		{"/flag", map[string]string{"BABYSITTER_STATE_DIR": "/state", "HOME": "/home"}, "/flag"},
		{"rel", nil, here + "/rel"},
		{"", map[string]string{"BABYSITTER_STATE_DIR": "state", "BABYSITTER_GLOBAL_STATE_DIR": "/global"}, here + "/state"},
		{"", map[string]string{"BABYSITTER_GLOBAL_STATE_DIR": "/global", "HOME": "/home"}, "/global/state"},
		{"", map[string]string{"BABYSITTER_GLOBAL_STATE_DIR": " ", "HOME": "/home"}, "/home/.a5c/state"},
	} {
		got, err := orchestrate.StateDir(tt.flag, func(name string) string { return tt.env[name] })
		require.NoError(t, err)
		assert.Equal(t, tt.want, got)
	}
	_, err = orchestrate.StateDir("", func(string) string { return "" })
	assert.ErrorContains(t, err, "give --state-dir")
}

func TestExport(t *testing.T) {
	const a, b = "export BABYSITTER_SESSION_ID=\"a\"\n", "export BABYSITTER_SESSION_ID=\"b\"\n"
	for _, tt := range []struct{ before, want string }{
		{"", a},
		{a, a},
		{"export PATH=/x", "export PATH=/x\n" + a},
		{a + "export OTHER=1\n", a + "export OTHER=1\n"},
		{a + b, a + b + a},
		{"  " + a + b + "# " + a, "  " + a + b + "# " + a + a},
		{"BABYSITTER_SESSION_ID=x\n", "BABYSITTER_SESSION_ID=x\n" + a},
		{"export BABYSITTER_SESSION_ID_OLD=\"a\"\n", "export BABYSITTER_SESSION_ID_OLD=\"a\"\n" + a},
	} {
		target := filepath.Join(t.TempDir(), "target")
		require.NoError(t, os.WriteFile(target, []byte(tt.before), 0o644))
		path := target + ".link"
		require.NoError(t, os.Symlink(target, path))
		require.NoError(t, orchestrate.ExportSession(path, "a"))
		require.NoError(t, orchestrate.ExportSession(path, "a"))
		got, err := os.ReadFile(target)
		require.NoError(t, err)
		assert.Equal(t, tt.want, string(got))
	}
	path := filepath.Join(t.TempDir(), "env")
	require.NoError(t, orchestrate.ExportSession(path, "a"))
	info, err := os.Stat(path)
	require.NoError(t, err)
	assert.Equal(t, "-rw-------", info.Mode().String())
	assert.Error(t, orchestrate.ExportSession(filepath.Join(t.TempDir(), "none", "env"), "a"))
}

// Two that write at the same moment exclude each other by nothing, and neither spoils what a third one reads.
func TestWritersAtTheSameMoment(t *testing.T) {
	f, err := orchestrate.StateFileAt(t.TempDir(), "s")
	require.NoError(t, err)
	require.NoError(t, f.Write(orchestrate.NewState("r", "p", 7, noon)))
	var both sync.WaitGroup
	for range 2 {
		both.Go(func() {
			for range 100 {
				assert.NoError(t, f.Write(orchestrate.NewState("r", "p", 7, noon)))
				s, err := f.Read()
				assert.NoError(t, err)
				assert.Equal(t, "r", s.RunID)
			}
		})
	}
	both.Wait()
}
