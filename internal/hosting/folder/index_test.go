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

func TestUserIndex(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	f := folder.Folder{ID: id, DB: "/g/nexus.db"}
	for value, want := range map[string]string{
		"":         filepath.Join(home, ".local", "state", "heartbeat", "hosts"),
		"relative": filepath.Join(home, ".local", "state", "heartbeat", "hosts"),
		home:       filepath.Join(home, "heartbeat", "hosts"),
	} {
		t.Setenv("XDG_STATE_HOME", value)
		x, err := folder.UserIndex()
		require.NoError(t, err)
		assert.Equal(t, folder.IndexAt(want), x)
		require.NoError(t, x.Add(f))
		assert.FileExists(t, filepath.Join(want, id))
	}
	t.Setenv("XDG_STATE_HOME", "")
	t.Setenv("HOME", "")
	_, err := folder.UserIndex()
	require.ErrorContains(t, err, "set XDG_STATE_HOME")
}

func TestIndex(t *testing.T) {
	x := folder.IndexAt(filepath.Join(t.TempDir(), "hosts"))
	all, err := x.All()
	require.NoError(t, err)
	assert.Empty(t, all)
	one, two := folder.Folder{ID: "a", DB: "/1/nexus.db"}, folder.Folder{ID: "a", DB: "/2/nexus.db"}
	other := folder.Folder{ID: "a.tmp", DB: "/1/nexus.db"} // named as a temporary file might be
	for _, f := range []folder.Folder{other, one, two, one, other} {
		require.NoError(t, x.Add(f))
	}
	found, err := x.Find("a")
	require.NoError(t, err)
	assert.Equal(t, []folder.Folder{one, two}, found, "the latest first, each once")
	all, err = x.All()
	require.NoError(t, err)
	assert.Equal(t, []folder.Folder{one, two, other}, all)
	require.NoError(t, x.Remove(one))
	require.NoError(t, x.Remove(one))
	all, err = x.All()
	require.NoError(t, err)
	assert.Equal(t, []folder.Folder{two, other}, all)
	require.NoError(t, x.Remove(two))
	found, err = x.Find("a")
	require.NoError(t, err)
	assert.Empty(t, found)
}

func TestDamagedIndex(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "hosts")
	x := folder.IndexAt(dir)
	good, bad := folder.Folder{ID: "good", DB: "/1/nexus.db"}, folder.Folder{ID: "bad", DB: "/1/nexus.db"}
	require.NoError(t, x.Add(good))
	for _, plant := range []func(path string) error{
		func(path string) error { return os.WriteFile(path, []byte("{"), 0o600) },
		func(path string) error { return os.Symlink(filepath.Join(dir, "good"), path) },
		func(path string) error { return unix.Mkfifo(path, 0o600) },
	} {
		require.NoError(t, plant(filepath.Join(dir, "bad")))
		all, err := x.All()
		require.ErrorContains(t, err, "look session bad up in the index")
		assert.Equal(t, []folder.Folder{good}, all)
		require.NoError(t, x.Add(bad), "it is replaced")
		found, err := x.Find("bad")
		require.NoError(t, err)
		assert.Equal(t, []folder.Folder{bad}, found)
		require.NoError(t, x.Remove(bad))
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "bad"), []byte(`{"dbs":["relative","/abs"],"more":1}`), 0o600))
	found, err := x.Find("bad")
	require.NoError(t, err)
	assert.Equal(t, []folder.Folder{{ID: "bad", DB: "/abs"}}, found)
}

func TestIndexIsPrivate(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "hosts")
	require.NoError(t, os.Mkdir(dir, 0o700))
	require.NoError(t, os.Chmod(dir, 0o777))
	require.ErrorIs(t, folder.IndexAt(dir).Add(folder.Folder{ID: id, DB: "/g/db"}), disk.ErrForeign)
}

func TestPruneIndex(t *testing.T) {
	x := folder.IndexAt(filepath.Join(t.TempDir(), "hosts"))
	there, gone := at(t.TempDir()), at(t.TempDir())
	unmounted := at(filepath.Join(t.TempDir(), "none"))
	require.NoError(t, there.Make())
	for _, f := range []folder.Folder{there, gone, unmounted} {
		require.NoError(t, x.Add(f))
	}
	n, err := x.Prune()
	require.NoError(t, err)
	assert.Equal(t, 1, n)
	left, err := x.All()
	require.NoError(t, err)
	assert.Equal(t, []folder.Folder{unmounted, there}, left)
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

func TestIndexTogether(t *testing.T) {
	x := folder.IndexAt(filepath.Join(t.TempDir(), "hosts"))
	var wait sync.WaitGroup
	for _, db := range []string{"/1/db", "/2/db", "/3/db", "/4/db"} {
		wait.Go(func() { assert.NoError(t, x.Add(folder.Folder{ID: id, DB: db})) })
	}
	wait.Wait()
	found, err := x.Find(id)
	require.NoError(t, err)
	assert.Len(t, found, 4)
}

func TestIndexSurvives(t *testing.T) {
	var gone, kept folder.Folder
	s := crash.Scenario{
		Setup: func(t testing.TB, dir string) {
			x := folder.IndexAt(filepath.Join(dir, "hosts"))
			gone, kept = folder.Folder{ID: "gone", DB: at(dir).DB}, folder.Folder{ID: id, DB: "/older/nexus.db"}
			require.NoError(t, x.Add(gone))
			require.NoError(t, x.Add(kept))
		},
		Run: func(dir string) crash.Command { return crash.Command{Name: "index", Args: []string{dir}} },
	}
	check := func(t *testing.T, c crash.Crash) {
		x := folder.IndexAt(filepath.Join(c.Dir, "hosts"))
		found, err := x.Find(id)
		require.NoError(t, err)
		assert.Contains(t, found, kept)
		if len(c.Promised) > 0 {
			assert.Len(t, found, 2)
		}
		require.NoError(t, x.Add(at(c.Dir)))
		all, err := x.All()
		require.NoError(t, err)
		assert.GreaterOrEqual(t, len(all), 2)
	}
	t.Run("kill", func(t *testing.T) { s.EveryKill(t, check) })
	t.Run("full disk", func(t *testing.T) { s.EveryFail(t, unix.ENOSPC, check) })
	t.Run("power loss", func(t *testing.T) { s.EveryPowerLoss(t, 1, 5, check) })
}
