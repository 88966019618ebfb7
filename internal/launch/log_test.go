package launch

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What others wrote, such as an event's reason, stays within the line that tells it.
func TestNobodyForgesALine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "agent.log")
	l, err := openLog(nil, path, nil)
	require.NoError(t, err)
	l.say(time.Now(), "paused: x\n2030-01-01T00:00:00Z answered job-1\x1b[2J\u2028")
	l.finish()
	written, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, 1, strings.Count(string(written), "\n"))
	assert.Contains(t, string(written), "paused: x 2030-01-01T00:00:00Z answered job-1\\u001b[2J\n")
}

// Another program may rename the log, as logrotate does, with or without a new file in its
// place. A link in its place is not followed.
func TestLogIsFollowed(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "agent.log")
	var troubles []string
	l, err := openLog(nil, path, func(err error) { troubles = append(troubles, err.Error()) })
	require.NoError(t, err)
	l.lineQueue.finish() // the test writes in its place
	say := func(line string) { _, err := l.file.Write([]byte(line + "\n")); require.NoError(t, err) }
	holds := func(name, want string) {
		t.Helper()
		text, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		assert.Equal(t, want, strings.ReplaceAll(string(text), "\n", " "))
	}
	move := func(to string) { require.NoError(t, os.Rename(path, filepath.Join(dir, to))) }
	say("one")
	say("two")
	move("first")
	say("three")
	move("second")
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	say("four")
	holds("first", "one two ")
	holds("second", "three ")
	holds("agent.log", "four ")
	info, err := os.Stat(path)
	require.NoError(t, err)
	assert.Equal(t, "-rw-------", info.Mode().String())

	move("third")
	require.NoError(t, os.Symlink(filepath.Join(dir, "elsewhere"), path))
	say("five")
	say("six")
	holds("third", "four five six ")
	assert.NoFileExists(t, filepath.Join(dir, "elsewhere"))
	require.Len(t, troubles, 1)
	assert.Contains(t, troubles[0], "agent.log: it is a symbolic link: name another file with --log")
	require.NoError(t, os.Remove(path))
	say("seven")
	holds("agent.log", "seven ")

	require.NoError(t, os.Remove(path))
	require.NoError(t, os.Mkdir(path, 0o700))
	say("eight")
	assert.Len(t, troubles, 2)
	require.NoError(t, l.file.Close())
}

// It is begun anew by itself, too, and that is no trouble.
func TestLogIsBegunAnew(t *testing.T) {
	path := filepath.Join(t.TempDir(), "agent.log")
	l, err := openLog(nil, path, func(err error) { t.Error(err) })
	require.NoError(t, err)
	l.lineQueue.finish()
	line := []byte(strings.Repeat("x", logSize<<20/4) + "\n")
	for range 9 {
		_, err := l.file.Write(line)
		require.NoError(t, err)
	}
	require.NoError(t, l.file.Close())
	all, err := filepath.Glob(filepath.Join(filepath.Dir(path), "agent*.log"))
	require.NoError(t, err)
	assert.Len(t, all, 3)
}
