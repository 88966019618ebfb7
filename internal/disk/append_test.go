package disk_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"heartbeat/internal/disk"
	"heartbeat/internal/testing/crash"
)

const (
	writers        = 20
	linesPerWriter = 25
)

// lineOf returns one writer's i-th line. Some lines are longer than a page, or than a pipe's buffer.
func lineOf(writer string, i int) string {
	size := []int{1, 100, 5_000, 70_000}[i%4]
	return writer + " " + strconv.Itoa(i) + " " + strings.Repeat(writer[:1], size) + "\n"
}

// appendLines appends all lines of one writer and prints where each begins.
func appendLines(path, writer string) error {
	fmt.Println("ready")
	if err := waitInput(); err != nil {
		return err
	}
	f, _, err := disk.OpenAppend(path)
	if err != nil {
		return err
	}
	for i := range linesPerWriter {
		off, err := f.Append([]byte(lineOf(writer, i)))
		if err != nil {
			return errors.Join(err, f.Close())
		}
		fmt.Println(off)
	}
	return f.Close()
}

// startAll starts n children and releases them when all are ready.
func startAll(t *testing.T, n int, command func(i int) crash.Command) []*crash.Running {
	t.Helper()
	var all []*crash.Running
	for i := range n {
		all = append(all, command(i).Start(t))
	}
	for _, r := range all {
		require.Equal(t, "ready", r.Line(t))
	}
	for _, r := range all {
		r.CloseInput(t)
	}
	return all
}

func TestAppendNeverTears(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	all := startAll(t, writers, func(i int) crash.Command {
		return crash.Command{Name: "append", Args: []string{path, string(rune('a' + i))}}
	})
	size := 0
	var offsets [writers][linesPerWriter]string
	for w, r := range all {
		for i := range linesPerWriter {
			offsets[w][i] = r.Line(t)
			size += len(lineOf(string(rune('a'+w)), i))
		}
		require.Zero(t, r.Wait(t).ExitCode)
	}
	log, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Len(t, log, size)
	for w := range writers {
		for i := range linesPerWriter {
			off, err := strconv.Atoi(offsets[w][i])
			require.NoError(t, err)
			require.True(t, off >= 0 && off < len(log), "line %d of writer %d is said to be at %d", i, w, off)
			want := lineOf(string(rune('a'+w)), i)
			require.True(t, bytes.HasPrefix(log[off:], []byte(want)), "line %d of writer %d is not at %d", i, w, off)
		}
	}
}

func TestAppend(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	f, created, err := disk.OpenAppend(path)
	require.NoError(t, err)
	assert.True(t, created)
	other, created, err := disk.OpenAppend(path)
	require.NoError(t, err)
	assert.False(t, created)
	for i, end := range []*disk.File{f, other, f, f, other} {
		off, err := end.Append([]byte("ab\n"))
		require.NoError(t, err)
		assert.EqualValues(t, 3*i, off)
	}
	b := make([]byte, 3)
	_, err = f.ReadAt(b, 12)
	require.NoError(t, err, "it is open for reading, too")
	require.NoError(t, errors.Join(f.Close(), other.Close()))
	assert.Equal(t, strings.Repeat("ab\n", 5), read(t, path))
	assert.Equal(t, "-rw-------", mode(t, path))
}

func mode(t *testing.T, path string) string {
	t.Helper()
	info, err := os.Stat(path)
	require.NoError(t, err)
	return info.Mode().String()
}

func TestAppendTorn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	write(t, path, "old\n")
	f, _, err := disk.OpenAppend(path)
	require.NoError(t, err)
	crash.Observe(t, crash.TearAt(1, unix.ENOSPC))
	_, err = f.Append([]byte("new!"))
	require.ErrorIs(t, err, unix.ENOSPC)
	assert.Equal(t, "old\nne", read(t, path))
	require.NoError(t, f.Truncate(4))
	off, err := f.Append([]byte("next"))
	require.NoError(t, err)
	assert.EqualValues(t, 4, off, "it lands at the end, wherever that is by now")
	require.NoError(t, f.Close())
	assert.Equal(t, "old\nnext", read(t, path))
}
