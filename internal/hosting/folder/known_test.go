package folder_test

import (
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"heartbeat/internal/disk"
	"heartbeat/internal/hosting/folder"
	"heartbeat/internal/testing/crash"
)

// home has this process find the sessions of a user of its own, and returns where their
// databases are noted.
func home(t *testing.T) string {
	dir := t.TempDir()
	t.Setenv("XDG_STATE_HOME", dir)
	return filepath.Join(dir, "heartbeat", "hosts")
}

func TestWhereDatabasesAreNoted(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	for value, want := range map[string]string{
		"":         filepath.Join(home, ".local", "state", "heartbeat", "hosts"),
		"relative": filepath.Join(home, ".local", "state", "heartbeat", "hosts"),
		home:       filepath.Join(home, "heartbeat", "hosts"),
	} {
		t.Setenv("XDG_STATE_HOME", value)
		require.NoError(t, folder.Remember("/g/nexus.db"))
		names, err := filepath.Glob(filepath.Join(want, "@*"))
		require.NoError(t, err)
		assert.Len(t, names, 1)
	}
	t.Setenv("XDG_STATE_HOME", "")
	t.Setenv("HOME", "")
	require.ErrorContains(t, folder.Remember("/g/nexus.db"), "set XDG_STATE_HOME")
}

func TestDatabases(t *testing.T) {
	home(t)
	dbs, err := folder.Databases()
	require.NoError(t, err)
	assert.Empty(t, dbs)
	for _, db := range []string{"/2/nexus.db", "/1/nexus.db", "/2/nexus.db", "/1/other.db"} {
		require.NoError(t, folder.Remember(db))
	}
	dbs, err = folder.Databases()
	require.NoError(t, err)
	assert.Equal(t, []string{"/1/nexus.db", "/1/other.db", "/2/nexus.db"}, dbs)
}

// What an older release has noted is moved: a file for each session.
func TestDatabasesOfAnOlderRelease(t *testing.T) {
	dir := home(t)
	require.NoError(t, os.MkdirAll(dir, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "ses-1"), []byte(`{"dbs":["/2/nexus.db","relative","/1/nexus.db"],"more":1}`), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "ses-2.tmp"), []byte(`{"dbs":["/2/nexus.db"]}`), 0o600))
	for range 2 {
		dbs, err := folder.Databases()
		require.NoError(t, err)
		assert.Equal(t, []string{"/1/nexus.db", "/2/nexus.db"}, dbs)
		assert.NoFileExists(t, filepath.Join(dir, "ses-1"))
		assert.NoFileExists(t, filepath.Join(dir, "ses-2.tmp"))
	}
}

func TestDamagedNotes(t *testing.T) {
	dir := home(t)
	require.NoError(t, folder.Remember("/1/nexus.db"))
	for _, plant := range []func(path string) error{
		func(path string) error { return os.WriteFile(path, []byte("{"), 0o600) },
		func(path string) error { return os.Symlink(filepath.Join(dir, "good"), path) },
		func(path string) error { return unix.Mkfifo(path, 0o600) },
	} {
		for _, name := range []string{"ses-1", "@1"} {
			path := filepath.Join(dir, name)
			require.NoError(t, plant(path))
			dbs, err := folder.Databases()
			require.ErrorContains(t, err, path+" cannot be read: remove it")
			assert.Equal(t, []string{"/1/nexus.db"}, dbs)
			require.NoError(t, os.Remove(path))
		}
	}
}

func TestNotesArePrivate(t *testing.T) {
	dir := home(t)
	require.NoError(t, os.MkdirAll(dir, 0o700))
	require.NoError(t, os.Chmod(dir, 0o777))
	require.ErrorIs(t, folder.Remember("/g/db"), disk.ErrForeign)
}

func TestPrune(t *testing.T) {
	home(t)
	there, gone := at(t.TempDir()), at(t.TempDir())
	unmounted := at(filepath.Join(t.TempDir(), "none"))
	require.NoError(t, there.Make())
	for _, f := range []folder.Folder{there, gone, unmounted} {
		require.NoError(t, folder.Remember(f.DB))
	}
	killed := filepath.Join(folder.Root(there.DB), ".ses-killed.gone")
	require.NoError(t, os.MkdirAll(filepath.Join(killed, "inbox"), 0o700))
	require.NoError(t, folder.Prune())
	assert.NoDirExists(t, killed)
	left, err := folder.Databases()
	require.NoError(t, err)
	assert.ElementsMatch(t, []string{unmounted.DB, there.DB}, left)
	all, err := folder.Beside(left...)
	require.NoError(t, err)
	assert.Equal(t, []folder.Folder{there}, all)
}

func TestBeside(t *testing.T) {
	f := at(t.TempDir())
	all, err := folder.Beside(f.DB)
	require.NoError(t, err)
	assert.Empty(t, all)
	require.NoError(t, f.Make())
	root := folder.Root(f.DB)
	require.NoError(t, os.Mkdir(filepath.Join(root, ".hidden"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(root, "file"), nil, 0o600))
	require.NoError(t, os.Symlink(id, filepath.Join(root, "link")))
	require.NoError(t, os.Mkdir(filepath.Join(root, "a"), 0o700))
	all, err = folder.Beside(f.DB)
	require.NoError(t, err)
	assert.Equal(t, []folder.Folder{{ID: "a", DB: f.DB}, f}, all)
}

func TestManyNotesAtOnce(t *testing.T) {
	home(t)
	var wait sync.WaitGroup
	for _, db := range []string{"/1/db", "/2/db", "/3/db", "/4/db", "/1/db", "/2/db"} {
		wait.Go(func() { assert.NoError(t, folder.Remember(db)) })
	}
	wait.Wait()
	dbs, err := folder.Databases()
	require.NoError(t, err)
	assert.Len(t, dbs, 4)
}

// What was noted stays, whoever noted it.
func TestNotesSurvive(t *testing.T) {
	s := crash.Scenario{
		Setup: func(t testing.TB, dir string) {
			hosts := filepath.Join(dir, "heartbeat", "hosts")
			require.NoError(t, os.MkdirAll(hosts, 0o700))
			require.NoError(t, os.WriteFile(filepath.Join(hosts, "ses-1"), []byte(`{"dbs":["/older/nexus.db"]}`), 0o600))
		},
		Run: func(dir string) crash.Command { return crash.Command{Name: "known", Args: []string{dir}} },
	}
	check := func(t *testing.T, c crash.Crash) {
		t.Setenv("XDG_STATE_HOME", c.Dir)
		dbs, err := folder.Databases()
		require.NoError(t, err)
		assert.Contains(t, dbs, "/older/nexus.db")
		if len(c.Promised) > 0 {
			assert.Len(t, dbs, 2)
		}
		require.NoError(t, folder.Remember("/g/db"))
	}
	t.Run("kill", func(t *testing.T) { s.EveryKill(t, check) })
	t.Run("full disk", func(t *testing.T) { s.EveryFail(t, unix.ENOSPC, check) })
	t.Run("power loss", func(t *testing.T) { s.EveryPowerLoss(t, 1, 5, check) })
}
