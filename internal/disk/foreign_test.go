package disk_test

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"heartbeat/internal/disk"
	"heartbeat/internal/testing/crash"
)

// odd are kinds of things that can be in a file's place.
var odd = map[string]func(t *testing.T, path string){
	"link": func(t *testing.T, path string) {
		write(t, path+".target", "content")
		require.NoError(t, os.Symlink(path+".target", path))
	},
	"link to nothing": func(t *testing.T, path string) { require.NoError(t, os.Symlink(path+".target", path)) },
	"link to itself":  func(t *testing.T, path string) { require.NoError(t, os.Symlink(path, path)) },
	"FIFO":            func(t *testing.T, path string) { require.NoError(t, unix.Mkfifo(path, 0o600)) },
	"directory":       func(t *testing.T, path string) { require.NoError(t, os.Mkdir(path, 0o700)) },
	"socket": func(t *testing.T, path string) {
		l, err := net.Listen("unix", path)
		require.NoError(t, err)
		t.Cleanup(func() { l.Close() })
	},
}

// TestStateFileRefused also shows that no open blocks.
func TestStateFileRefused(t *testing.T) {
	for what, makeIt := range odd {
		for name, open := range map[string]func(path string) error{
			"OpenRead":    func(path string) error { _, err := disk.OpenRead(path); return err },
			"OpenWrite":   func(path string) error { _, _, err := disk.OpenWrite(path); return err },
			"Create":      disk.Create,
			"Touch":       disk.Touch,
			"AcquireLock": func(path string) error { _, err := disk.AcquireLock(context.Background(), path, 0); return err },
		} {
			t.Run(what+"/"+name, func(t *testing.T) {
				t.Chdir(t.TempDir()) // a socket's path must be short
				makeIt(t, "f")
				err := open("f")
				require.Error(t, err)
				assert.ErrorContains(t, err, "open f: ")
				exists, existsErr := disk.Exists("f.target")
				require.NoError(t, existsErr)
				assert.Equal(t, what == "link", exists, "nothing is made through a link")
				if name == "OpenRead" && what != "socket" || strings.HasPrefix(what, "link") {
					assert.ErrorIs(t, err, disk.ErrForeign)
				}
			})
		}
	}
}

func TestUsersFile(t *testing.T) {
	for what, want := range map[string]string{
		"link":           "",
		"link to itself": "too many levels of symbolic links",
		"FIFO":           "it is not a regular file",
		"directory":      "directory",
		"socket":         "no such device or address",
	} {
		t.Run(what, func(t *testing.T) {
			t.Chdir(t.TempDir())
			odd[what](t, "f")
			f, created, err := disk.OpenAppend("f")
			assert.False(t, created)
			if want != "" {
				require.ErrorContains(t, err, want)
				require.ErrorContains(t, err, "open f: ")
				return
			}
			require.NoError(t, err)
			_, err = f.Append([]byte("+"))
			require.NoError(t, err)
			require.NoError(t, f.Close())
			assert.Equal(t, "content+", read(t, "f.target"))
		})
	}
}

func TestPublishReplacesLink(t *testing.T) {
	t.Chdir(t.TempDir())
	odd["link"](t, "f")
	odd["link"](t, "f.tmp")
	require.NoError(t, disk.Publish("f", []byte("new"), true))
	assert.Equal(t, "new", read(t, "f"))
	assert.Equal(t, "content", read(t, "f.target"))
	assert.Equal(t, "content", read(t, "f.tmp.target"))

	require.NoError(t, os.Mkdir("d", 0o700))
	require.Error(t, disk.Publish("d", []byte("new"), true))
	assert.NoFileExists(t, "d.tmp")
}

// publicDir is a directory that every user can reach.
func publicDir(t *testing.T) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can make files of other users")
	}
	dir := t.TempDir()
	for _, d := range []string{filepath.Dir(dir), dir} {
		require.NoError(t, os.Chmod(d, 0o755))
	}
	return dir
}

func TestOtherUsersFileRefused(t *testing.T) {
	dir := publicDir(t)
	const me, other = 65501, 65502
	args := []string{"65501"}
	for _, file := range []struct {
		name string
		uid  int
		mode os.FileMode
	}{{"mine", me, 0o600}, {"root's", 0, 0o644}, {"other's", other, 0o666}, {"other's secret", other, 0o600}} {
		path := filepath.Join(dir, file.name)
		write(t, path, "content")
		require.NoError(t, os.Chmod(path, file.mode))
		require.NoError(t, os.Chown(path, file.uid, file.uid))
		args = append(args, path)
	}
	r := crash.Child(t, "open as", args)
	require.Zero(t, r.ExitCode, r.Stderr)
	assert.Equal(t, []string{
		"false <nil>",
		"false <nil>",
		"true open " + dir + "/other's: it belongs to user 65502, and this is user 65501: not a file of ours",
		"false open " + dir + "/other's secret: permission denied",
	}, strings.Split(strings.TrimSpace(r.Stdout), "\n"))
}

func TestRootLeavesFileToOwnerOfDirectory(t *testing.T) {
	dir := publicDir(t)
	require.NoError(t, os.Chown(dir, 65501, 65501))
	require.NoError(t, disk.Create(filepath.Join(dir, "created")))
	require.NoError(t, disk.Publish(filepath.Join(dir, "published"), nil, false))
	f, _, err := disk.OpenAppend(filepath.Join(dir, "appended"))
	require.NoError(t, err)
	require.NoError(t, f.Close())
	for _, name := range []string{"created", "published", "appended"} {
		assert.EqualValues(t, 65501, info(t, filepath.Join(dir, name)).UID, name)
	}
}
