package disk_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"heartbeat/internal/disk"
)

// Reading a whole file must not allocate 8 TiB for a sparse file, nor wait for a FIFO's writer.
func TestReadWholeIsBounded(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "f", "content")
	for name, read := range map[string]func(string, int64) ([]byte, error){"ReadFile": disk.ReadFile, "ReadState": disk.ReadState} {
		t.Run(name, func(t *testing.T) {
			b, err := read("f", 7)
			require.NoError(t, err)
			assert.Equal(t, "content", string(b))

			_, err = read("f", 6)
			require.ErrorIs(t, err, disk.ErrTooLarge)
			require.ErrorContains(t, err, "read f: the file is too large: it has 7 bytes, and may have no more than 6 bytes")

			_, err = read("none", 6)
			require.ErrorIs(t, err, os.ErrNotExist)
			_, err = read("/dev/zero", 6)
			require.ErrorContains(t, err, "it is not a regular file")
		})
	}
	require.NoError(t, unix.Mkfifo("fifo", 0o600))
	_, err := disk.ReadFile("fifo", 6)
	require.ErrorContains(t, err, "it is not a regular file")

	require.NoError(t, os.Truncate("f", 8<<40))
	f, err := disk.OpenRead("f")
	require.NoError(t, err)
	defer f.Close()
	_, err = f.ReadUpTo(disk.MaxWhole)
	require.ErrorIs(t, err, disk.ErrTooLarge)
}

func TestReadFollowsLinksOfTheUserAlone(t *testing.T) {
	t.Chdir(t.TempDir())
	odd["link"](t, "f")
	b, err := disk.ReadFile("f", 100)
	require.NoError(t, err)
	assert.Equal(t, "content", string(b))
	_, err = disk.ReadState("f", 100)
	require.ErrorIs(t, err, disk.ErrForeign)
}

// The other name may belong to a file that must never be written.
func TestSecondNameIsRefused(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "precious", "content")
	require.NoError(t, os.Link("precious", "f"))
	require.NoError(t, os.Chmod(".", 0o777))
	for name, open := range map[string]func() error{
		"OpenRead":     func() error { _, err := disk.OpenRead("f"); return err },
		"OpenExisting": func() error { _, err := disk.OpenExisting("f"); return err },
		"OpenWrite":    func() error { _, _, err := disk.OpenWrite("f"); return err },
		"Touch":        func() error { return disk.Touch("f") },
		"ReadState":    func() error { _, err := disk.ReadState("f", 100); return err },
	} {
		err := open()
		require.ErrorIs(t, err, disk.ErrForeign, name)
		require.ErrorContains(t, err, "open f: the file has 2 names", name)
	}
	require.NoError(t, disk.Publish("f", []byte("new"), false), "a new file takes the name")
	assert.Equal(t, "content", read(t, "precious"))
	assert.Equal(t, "new", read(t, "f"))
}

// If nobody else can create names, the other name is our own, as after a backup with hard links.
func TestSecondNameOfOurs(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "f", "content")
	require.NoError(t, os.Link("f", "backup"))
	f, created, err := disk.OpenWrite("f")
	require.NoError(t, err)
	assert.False(t, created)
	require.NoError(t, f.WriteAt([]byte("C"), 0))
	require.NoError(t, f.Close())
	b, err := disk.ReadState("f", 100)
	require.NoError(t, err)
	assert.Equal(t, "Content", string(b))
}

func TestStateFileIsNarrowed(t *testing.T) {
	t.Chdir(t.TempDir())
	mode := func() os.FileMode { return lstat(t, "f").Mode() }
	for name, open := range map[string]func() (*disk.File, error){
		"OpenExisting": func() (*disk.File, error) { return disk.OpenExisting("f") },
		"OpenWrite":    func() (*disk.File, error) { f, _, err := disk.OpenWrite("f"); return f, err },
	} {
		write(t, "f", "content")
		require.NoError(t, os.Chmod("f", 0o666))
		f, err := disk.OpenRead("f")
		require.NoError(t, err)
		require.NoError(t, f.Close())
		assert.EqualValues(t, 0o666, mode(), "who only looks changes nothing")
		f, err = open()
		require.NoError(t, err, name)
		require.NoError(t, f.Close())
		assert.EqualValues(t, 0o600, mode(), name)
	}
	write(t, "f", "content")
	require.NoError(t, os.Chmod("f", 0o644))
	f, _, err := disk.OpenAppend("f")
	require.NoError(t, err)
	require.NoError(t, f.Close())
	assert.EqualValues(t, 0o644, mode(), "the inbox is the user's")
}

func lstat(t *testing.T, path string) os.FileInfo {
	t.Helper()
	i, err := os.Lstat(path)
	require.NoError(t, err)
	return i
}

// A file that an agent names is read only in the allowed directories.
func TestReadBelow(t *testing.T) {
	top := t.TempDir()
	dir, outside := filepath.Join(top, "dir"), filepath.Join(top, "outside")
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "sub"), 0o700))
	write(t, outside, "secret")
	write(t, filepath.Join(dir, "sub", "in"), "told")
	write(t, filepath.Join(dir, "big"), "0123456789x")
	require.NoError(t, os.Symlink("sub/in", filepath.Join(dir, "link in")))
	require.NoError(t, os.Symlink("../outside", filepath.Join(dir, "link out")))
	require.NoError(t, os.Symlink(outside, filepath.Join(dir, "absolute")))
	require.NoError(t, os.Symlink("..", filepath.Join(dir, "up")))
	require.NoError(t, os.Symlink("/dev/zero", filepath.Join(dir, "device")))
	require.NoError(t, os.Symlink(dir, filepath.Join(top, "second")))
	require.NoError(t, unix.Mkfifo(filepath.Join(dir, "fifo"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "sparse"), nil, 0o600))
	require.NoError(t, os.Truncate(filepath.Join(dir, "sparse"), 1<<40))
	for name, want := range map[string]string{"sub/in": "", "link in": "", "up/dir/sub/in": "escapes",
		"link out": "escapes", "absolute": "escapes", "up/outside": "escapes", "device": "escapes", "../outside": "only files below",
		"sub/../../outside": "only files below", "fifo": "not a regular file", "sub": "not a regular file", "nowhere": "no such file",
		"big": "more than 10 bytes", "sparse": "more than 10 bytes"} {
		b, err := disk.ReadBelow(dir+"/"+name, 10, "/nowhere", dir)
		if want == "" {
			require.NoError(t, err, name)
			assert.Equal(t, "told", string(b), name)
			continue
		}
		require.ErrorContains(t, err, want, name)
		assert.Empty(t, b, name)
	}
	b, err := disk.ReadBelow(filepath.Join(top, "second", "sub", "in"), 10, dir)
	require.NoError(t, err, "a directory by another name")
	assert.Equal(t, "told", string(b))
}
