package disk_test

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"heartbeat/internal/disk"
	"heartbeat/internal/testing/crash"
)

func TestOpenRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	_, err := disk.OpenRead(path)
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.ErrorContains(t, err, path)

	write(t, path, "content")
	f, err := disk.OpenRead(path)
	require.NoError(t, err)
	assert.Equal(t, path, f.Path())
	assert.EqualValues(t, 7, f.Info().Size)
	b, err := f.ReadUpTo(disk.MaxWhole)
	require.NoError(t, err)
	assert.Equal(t, "content", string(b))
	require.ErrorIs(t, f.WriteAt([]byte("x"), 0), unix.EBADF)
	require.NoError(t, f.Close())
	require.NoError(t, f.Close(), "closing twice is no error")
	_, err = f.ReadAt(make([]byte, 1), 0)
	require.ErrorIs(t, err, unix.EBADF)
}

func TestReadAt(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	write(t, path, "content")
	f, err := disk.OpenRead(path)
	require.NoError(t, err)
	defer f.Close()
	for _, test := range []struct {
		off     int64
		size    int
		want    string
		wantErr error
	}{
		{0, 7, "content", nil},
		{3, 2, "te", nil},
		{5, 5, "nt", io.EOF},
		{7, 1, "", io.EOF},
		{99, 1, "", io.EOF},
		{99, 0, "", nil},
	} {
		b := make([]byte, test.size)
		n, err := f.ReadAt(b, test.off)
		assert.Equal(t, test.want, string(b[:n]))
		assert.Equal(t, test.wantErr, err)
	}
}

func TestOpenWriteCreates(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	f, created, err := disk.OpenWrite(path)
	require.NoError(t, err)
	assert.True(t, created)
	require.NoError(t, f.WriteAt([]byte("content"), 0))
	require.NoError(t, f.WriteAt([]byte("XY"), 8))
	require.NoError(t, f.Sync())
	require.NoError(t, f.Close())
	assert.Equal(t, "content\x00XY", read(t, path))
	info, err := os.Stat(path)
	require.NoError(t, err)
	assert.Equal(t, fs.FileMode(0o600), info.Mode())

	f, created, err = disk.OpenWrite(path)
	require.NoError(t, err)
	assert.False(t, created)
	assert.EqualValues(t, 10, f.Info().Size)
	require.NoError(t, f.Truncate(3))
	got, err := f.Stat()
	require.NoError(t, err)
	assert.EqualValues(t, 3, got.Size)
	require.NoError(t, f.Close())
	assert.Equal(t, "con", read(t, path))
}

func TestOpenInMissingDirectory(t *testing.T) {
	path := filepath.Join(t.TempDir(), "missing", "f")
	_, _, err := disk.OpenWrite(path)
	require.ErrorIs(t, err, fs.ErrNotExist)
	_, _, err = disk.OpenAppend(path)
	require.ErrorIs(t, err, fs.ErrNotExist)
}

func TestCreateAndTouch(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	require.NoError(t, disk.Create(path))
	write(t, path, "content")
	require.NoError(t, disk.Create(path))
	assert.Equal(t, "content", read(t, path), "what is there stays")

	old := info(t, path).Mtime - 1e12
	require.NoError(t, unix.UtimesNano(path, []unix.Timespec{unix.NsecToTimespec(old), unix.NsecToTimespec(old)}))
	require.NoError(t, disk.Touch(path))
	assert.Greater(t, info(t, path).Mtime, old+9e11)
	assert.Greater(t, info(t, path).Atime, old+9e11)
	assert.Equal(t, "content", read(t, path))

	require.NoError(t, disk.Touch(path+"2"))
	assert.Empty(t, read(t, path+"2"))
}

func info(t *testing.T, path string) disk.Info {
	t.Helper()
	f, err := disk.OpenRead(path)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	return f.Info()
}

func TestRemoveAndExists(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	require.NoError(t, os.Symlink("/nowhere", path))
	exists, err := disk.Exists(path)
	require.NoError(t, err)
	assert.True(t, exists, "a link to nothing is something")

	require.NoError(t, disk.Remove(path))
	exists, err = disk.Exists(path)
	require.NoError(t, err)
	assert.False(t, exists)
	require.NoError(t, disk.Remove(path), "what is not there is no error")

	require.Error(t, disk.Remove(filepath.Dir(path)), "a directory is not removed")
	write(t, path, "")
	_, err = disk.Exists(path + "/below")
	require.ErrorIs(t, err, unix.ENOTDIR)
}

// TestRefusedCallsAreNotMade runs each call with an observer that refuses it.
func TestRefusedCallsAreNotMade(t *testing.T) {
	open := func(path string, change func(*disk.File) error) error {
		f, _, err := disk.OpenWrite(path)
		if err != nil {
			return err
		}
		return errors.Join(change(f), f.Close())
	}
	for _, test := range []struct {
		kind disk.Kind
		call func(path string) error
	}{
		{disk.OpCreate, func(path string) error { return disk.Create(path + "2") }},
		{disk.OpCreate, func(path string) error { _, _, err := disk.OpenAppend(path + "2"); return err }},
		{disk.OpWrite, func(path string) error {
			return open(path, func(f *disk.File) error { return f.WriteAt([]byte("x"), 0) })
		}},
		{disk.OpTruncate, func(path string) error { return open(path, func(f *disk.File) error { return f.Truncate(0) }) }},
		{disk.OpSync, func(path string) error { return open(path, (*disk.File).Sync) }},
		{disk.OpSyncDir, func(path string) error { return disk.SyncDir(filepath.Dir(path)) }},
		{disk.OpRemove, disk.Remove},
		{disk.OpRemove, func(path string) error { return disk.Publish(path, []byte("x"), true) }},
		{disk.OpTouch, disk.Touch},
	} {
		t.Run(string(test.kind), func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "f")
			write(t, path, "content")
			before := crash.Snapshot(t, dir).Files()
			stop := crash.Observe(t, crash.FailFrom(1, unix.EDQUOT))
			err := test.call(path)
			stop()
			require.ErrorIs(t, err, unix.EDQUOT)
			var pathError *fs.PathError
			require.ErrorAs(t, err, &pathError)
			assert.Equal(t, string(test.kind), pathError.Op)
			assert.Equal(t, before, crash.Snapshot(t, dir).Files())
		})
	}
}

func TestSyncDirOfFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	write(t, path, "")
	require.ErrorIs(t, disk.SyncDir(path), unix.ENOTDIR)
}

// Stat sees writes by others since the file was opened.
func TestStat(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	write(t, path, "one\n")
	f, err := disk.OpenRead(path)
	require.NoError(t, err)
	info, err := f.Stat()
	require.NoError(t, err)
	assert.EqualValues(t, 4, info.Size)
	other, _, err := disk.OpenAppend(path)
	require.NoError(t, err)
	_, err = other.Append([]byte("two\n"))
	require.NoError(t, err)
	require.NoError(t, other.Close())
	info, err = f.Stat()
	require.NoError(t, err)
	assert.EqualValues(t, 8, info.Size)
	assert.Equal(t, info, f.Info())
	require.NoError(t, f.Close())
}

func TestFree(t *testing.T) {
	free, err := disk.Free(t.TempDir())
	require.NoError(t, err)
	assert.Positive(t, free)
	_, err = disk.Free("/nowhere")
	require.ErrorIs(t, err, fs.ErrNotExist)
}

// The next process can open what this one made under any umask.
func TestUmask(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	defer unix.Umask(unix.Umask(0o777))
	require.NoError(t, disk.Create(path))
	info, err := os.Stat(path)
	require.NoError(t, err)
	assert.Equal(t, fs.FileMode(0o600), info.Mode())
}

// A file system without a free inode takes no new file, whatever space is left. Some never say that one is free: believed
// is only that a file cannot be made for want of one.
func TestFreeWithoutInodes(t *testing.T) {
	if dir := os.Getenv("WITHOUT_INODES"); dir != "" {
		full := os.WriteFile(filepath.Join(dir, "the last"), nil, 0o600) == nil // not the second time: read-only
		free, err := disk.Free(dir)
		require.NoError(t, err)
		assert.Equal(t, full, free == 0)
		return
	}
	const mount = `mount -t tmpfs -o nr_inodes=2 none "$WITHOUT_INODES"`
	alone := []string{"--user", "--map-root-user", "--mount", "sh", "-c"}
	env := append(os.Environ(), "WITHOUT_INODES="+t.TempDir())
	try := exec.Command("unshare", append(alone, mount)...)
	try.Env = env
	if out, err := try.CombinedOutput(); err != nil {
		t.Skipf("nothing can be mounted here: %s", out)
	}
	cmd := exec.Command("unshare", append(alone, mount+` && "$0" "$1" && mount -o remount,ro "$WITHOUT_INODES" && exec "$0" "$1"`,
		os.Args[0], "-test.run=^TestFreeWithoutInodes$")...)
	cmd.Env = env
	out, err := cmd.CombinedOutput()
	assert.NoError(t, err, "%s", out)
}
