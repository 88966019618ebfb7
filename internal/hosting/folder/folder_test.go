package folder_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"heartbeat/internal/disk"
	"heartbeat/internal/hosting/folder"
	"heartbeat/internal/hosting/store"
	"heartbeat/internal/testing/crash"
)

func TestCheckID(t *testing.T) {
	for _, good := range []string{"a", "0", id, "A.b_c-D", "a..b", strings.Repeat("x", 128)} {
		assert.NoError(t, folder.CheckID(good), good)
	}
	for bad, why := range map[string]string{
		"":                       "empty",
		strings.Repeat("x", 129): "at most 128 characters, and has 129",
		".":                      "begin with a letter or a digit",
		"..":                     "begin with a letter or a digit",
		"-a":                     "begin with a letter or a digit",
		"_a":                     "begin with a letter or a digit",
		"a/b":                    `has '/'`,
		"a b":                    `has ' '`,
		"a\x00":                  `has '\x00'`,
		"a\n":                    `has '\n'`,
		"aé":                     `has '\u00e9'`,
		"a\xff":                  `has '\ufffd'`,
	} {
		assert.ErrorContains(t, folder.CheckID(bad), why, "%q", bad)
		_, err := folder.At("/g/nexus.db", bad)
		assert.Error(t, err, "%q", bad)
	}
}

func TestPaths(t *testing.T) {
	f, err := folder.At("/none/.nexus/nexus.db", "s")
	require.NoError(t, err)
	assert.Equal(t, folder.Folder{ID: "s", DB: "/none/.nexus/nexus.db"}, f)
	assert.Equal(t, []string{
		"/none/.nexus/heartbeat-host/s",
		"/none/.nexus/heartbeat-host/s/state.json",
		"/none/.nexus/heartbeat-host/s/lock",
		"/none/.nexus/heartbeat-host/s/sock",
		"/none/.nexus/heartbeat-host/s/inbox/inbox.jsonl",
		"/none/.nexus/heartbeat-host/s/messages.spool",
		"/none/.nexus/heartbeat-host/s/tmp",
	}, []string{f.Dir(), f.StatePath(), f.LockPath(), f.SocketPath(), f.InboxPath(), f.SpoolPath(), f.TempDir()})
}

// A session is the same by whatever way its database is reached.
func TestOneSpelling(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	require.NoError(t, os.Mkdir(filepath.Join(dir, "real"), 0o700))
	require.NoError(t, os.Symlink("real", filepath.Join(dir, "link")))
	want := folder.Folder{ID: "s", DB: filepath.Join(dir, "real", "db")}
	for _, db := range []string{"real/db", "link/db", "link/../real/./db"} {
		f, err := folder.At(dir+"/"+db, "s")
		require.NoError(t, err)
		assert.Equal(t, want, f, db)
	}
	t.Chdir(dir)
	f, err := folder.At("link/db", "s")
	require.NoError(t, err)
	assert.Equal(t, want, f)
}

func TestMakeIsPrivate(t *testing.T) {
	f, _ := claimed(t)
	for _, dir := range []string{folder.Root(f.DB), f.Dir(), filepath.Dir(f.InboxPath()), f.TempDir()} {
		info, err := os.Lstat(dir)
		require.NoError(t, err)
		assert.Equal(t, fs.ModeDir|0o700, info.Mode(), dir)
	}
	info, err := os.Lstat(f.LockPath())
	require.NoError(t, err)
	assert.Equal(t, fs.FileMode(0o600), info.Mode())
	require.NoError(t, f.Make(), "a second time")
}

func TestNoDatabaseDirectory(t *testing.T) {
	f := at(filepath.Join(t.TempDir(), "none"))
	_, err := f.Claim(t.Context())
	require.ErrorIs(t, err, fs.ErrNotExist)
	_, err = f.Lock(t.Context())
	require.ErrorIs(t, err, fs.ErrNotExist)
	_, err = f.Read()
	require.ErrorIs(t, err, fs.ErrNotExist)
	there, err := f.Exists()
	require.NoError(t, err)
	assert.False(t, there)
}

// Somebody else may have put any name where a folder belongs.
func TestPlanted(t *testing.T) {
	elsewhere := t.TempDir()
	plant := map[string]func(path string) error{
		"link":     func(path string) error { return os.Symlink(elsewhere, path) },
		"dangling": func(path string) error { return os.Symlink(filepath.Join(elsewhere, "none"), path) },
		"file":     func(path string) error { return os.WriteFile(path, nil, 0o600) },
		"fifo":     func(path string) error { return unix.Mkfifo(path, 0o600) },
		"wide":     func(path string) error { return errors.Join(os.Mkdir(path, 0o700), os.Chmod(path, 0o770)) },
	}
	for name, plant := range plant {
		for i, where := range []func(folder.Folder) string{
			func(f folder.Folder) string { return folder.Root(f.DB) },
			folder.Folder.Dir,
			folder.Folder.TempDir,
		} {
			f := at(t.TempDir())
			path := where(f)
			require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
			require.NoError(t, plant(path))
			_, err := f.Claim(t.Context())
			require.ErrorIs(t, err, disk.ErrForeign, "%s %d", name, i)
			assert.ErrorContains(t, err, path)
			if path == f.TempDir() {
				continue
			}
			_, err = f.Lock(t.Context())
			require.ErrorIs(t, err, disk.ErrForeign, "%s %d", name, i)
			_, err = f.View()
			require.ErrorIs(t, err, disk.ErrForeign, "%s %d", name, i)
			require.ErrorIs(t, f.Purge(t.Context(), longAgo, true), disk.ErrForeign, "%s %d", name, i)
		}
	}
	left, err := os.ReadDir(elsewhere)
	require.NoError(t, err)
	assert.Empty(t, left, "nothing was written through a link")
}

func TestPlantedFiles(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.WriteFile(secret, []byte("keep"), 0o600))
	plant := map[string]func(path string) error{
		"link":      func(path string) error { return os.Symlink(secret, path) },
		"hard link": func(path string) error { return os.Link(secret, path) },
		"fifo":      func(path string) error { return unix.Mkfifo(path, 0o600) },
		"directory": func(path string) error { return os.Mkdir(path, 0o700) },
	}
	for name, plant := range plant {
		f := at(filepath.Dir(secret))
		require.NoError(t, f.Make(), name)
		require.NoError(t, os.Chmod(filepath.Dir(f.StatePath()), 0o777)) // for whoever plants it
		require.NoError(t, plant(f.StatePath()), name)
		_, err := f.Read()
		require.ErrorIs(t, err, disk.ErrForeign, name)
		require.NoError(t, plant(f.LockPath()), name)
		_, err = f.Lock(t.Context())
		require.ErrorIs(t, err, disk.ErrForeign, name)
		require.NoError(t, os.RemoveAll(f.Dir()))
	}
	text, err := os.ReadFile(secret)
	require.NoError(t, err)
	assert.Equal(t, "keep", string(text))
}

func TestOthersFolder(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give a file away")
	}
	f := at(t.TempDir())
	require.NoError(t, f.Make())
	require.NoError(t, os.Chown(f.Dir(), 4711, 4711))
	_, err := f.Lock(t.Context())
	require.ErrorIs(t, err, disk.ErrForeign)
	assert.ErrorContains(t, err, "belongs to user 4711")

	// Root finishes the sessions of a user beside that user's database.
	require.NoError(t, os.Chown(folder.Root(f.DB), 4711, 4711))
	require.NoError(t, os.Chown(filepath.Dir(f.DB), 4711, 4711))
	lock, err := f.Lock(t.Context())
	require.NoError(t, err)
	require.NoError(t, lock.Release())
}

func TestOthersFiles(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give a file away")
	}
	f, lock := claimed(t)
	require.NoError(t, lock.Write(ended()))
	require.NoError(t, lock.Release())
	db := filepath.Join(folder.Root(f.DB), store.Name)
	require.NoError(t, os.Chown(db, 4711, 4711))
	_, err := f.Read()
	require.ErrorIs(t, err, disk.ErrForeign)
	require.NoError(t, os.WriteFile(f.StatePath(), []byte("{}"), 0o600))
	require.NoError(t, os.Chown(f.StatePath(), 4711, 4711))
	_, err = f.Read()
	require.ErrorIs(t, err, disk.ErrForeign)
	require.NoError(t, os.Chown(f.LockPath(), 4711, 4711))
	_, err = f.Lock(t.Context())
	require.ErrorIs(t, err, disk.ErrForeign)
}

func TestOneHost(t *testing.T) {
	f := at(t.TempDir())
	other := crash.Command{Name: "live", Args: []string{filepath.Dir(f.DB)}}.Start(t)
	require.Equal(t, "up", other.Line(t))
	var busy *folder.BusyError
	for _, take := range []func(context.Context) (*folder.Lock, error){f.Claim, f.Lock} {
		_, err := take(t.Context())
		require.ErrorAs(t, err, &busy)
		assert.Positive(t, busy.PID)
		assert.ErrorContains(t, err, " already works on session "+id)
	}
	require.ErrorAs(t, f.Purge(t.Context(), longAgo, true), &busy)
	v, err := f.View()
	require.NoError(t, err)
	assert.Equal(t, folder.Running, v.Status)
	assert.Equal(t, busy.PID, v.Host)

	other.Kill(t)
	v, err = f.View()
	require.NoError(t, err)
	assert.Equal(t, folder.Dead, v.Status)
	assert.Zero(t, v.Host)
	alive, known := v.State.Host.Alive()
	assert.Equal(t, []bool{false, true}, []bool{alive, known})
	lock, err := f.Lock(t.Context())
	require.NoError(t, err, "the kernel gave it back")
	v, err = f.View()
	require.NoError(t, err)
	assert.Equal(t, folder.Dead, v.Status, "who finishes it is no host")
	require.NoError(t, lock.Release())
}

// Of many that start at once one is the host.
func TestManyStart(t *testing.T) {
	dir := t.TempDir()
	started := make([]*crash.Running, 5)
	for i := range started {
		started[i] = crash.Command{Name: "live", Args: []string{dir}}.Start(t)
	}
	hosts := 0
	for _, r := range started {
		if r.Line(t) == "up" {
			hosts++
			defer r.CloseInput(t)
			continue
		}
		result := r.Wait(t)
		assert.Contains(t, result.Stderr, " already works on session "+id)
	}
	assert.Equal(t, 1, hosts)
}

func TestLockEndsWithItsContext(t *testing.T) {
	f, _ := claimed(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := f.Lock(ctx)
	require.ErrorIs(t, err, context.Canceled)
}

func TestReleaseTwice(t *testing.T) {
	_, lock := claimed(t)
	require.NoError(t, lock.Release())
	require.NoError(t, lock.Release())
	require.ErrorIs(t, lock.Write(ended()), disk.ErrLockGone)
	var none *folder.Lock
	require.NoError(t, none.Release())
}

// A host whose folder was removed under it must not write what a later one reads.
func TestLockGone(t *testing.T) {
	f, lock := claimed(t)
	require.NoError(t, os.Remove(f.LockPath()))
	require.ErrorIs(t, lock.Write(ended()), disk.ErrLockGone)
}
