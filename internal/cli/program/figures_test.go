package program_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"heartbeat/internal/cli/program"
)

// only checks that a directory has this file and nothing else.
func only(t *testing.T, path, content string) {
	t.Helper()
	all, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	require.Len(t, all, 1)
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, content, string(b))
}

func TestWriteFigures(t *testing.T) {
	path := filepath.Join(t.TempDir(), "heartbeat.prom")
	defer unix.Umask(unix.Umask(0o077)) // the collector is another user
	require.NoError(t, program.WriteFigures(path, []byte("one")))
	only(t, path, "one")
	before, err := os.Open(path)
	require.NoError(t, err)
	defer func() { require.NoError(t, before.Close()) }()
	require.NoError(t, program.WriteFigures(path, []byte("two")))
	only(t, path, "two")
	info, err := os.Stat(path)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o644), info.Mode())
	old := make([]byte, 3)
	_, err = before.Read(old)
	require.NoError(t, err)
	assert.Equal(t, "one", string(old), "who reads the old one is not disturbed")
}

func TestWriteFiguresRefusesWhatIsNoPlainFile(t *testing.T) {
	target := filepath.Join(t.TempDir(), "target")
	require.NoError(t, os.WriteFile(target, []byte("kept"), 0o600))
	for name, make := range map[string]func(path string) error{
		"link":          func(path string) error { return os.Symlink(target, path) },
		"dangling link": func(path string) error { return os.Symlink(target+".none", path) },
		"directory":     func(path string) error { return os.Mkdir(path, 0o700) },
		"fifo":          func(path string) error { return unix.Mkfifo(path, 0o600) },
	} {
		path := filepath.Join(t.TempDir(), "heartbeat.prom")
		require.NoError(t, make(path))
		assert.ErrorContains(t, program.WriteFigures(path, []byte("new")), path, name)
		all, err := os.ReadDir(filepath.Dir(path))
		require.NoError(t, err)
		assert.Len(t, all, 1, name)
	}
	only(t, target, "kept")
	assert.ErrorIs(t, program.WriteFigures(filepath.Join(t.TempDir(), "none", "file"), nil), os.ErrNotExist)
}
