package terminal

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/disk"
)

// event is a line behind the header.
type event struct {
	time float64
	code string
	data string
}

// play reads a recording as a player does: strictly, line by line.
func play(t *testing.T, path string) (h header, events []event) {
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.True(t, len(text) == 0 || bytes.HasSuffix(text, []byte("\n")), "the last line is not whole")
	for i, line := range bytes.Split(bytes.TrimSuffix(text, []byte("\n")), []byte("\n")) {
		if i == 0 {
			d := json.NewDecoder(bytes.NewReader(line))
			d.DisallowUnknownFields()
			require.NoError(t, d.Decode(&h), "%s", line)
			continue
		}
		var e event
		require.NoError(t, json.Unmarshal(line, &[]any{&e.time, &e.code, &e.data}), "%s", line)
		if i > 1 {
			require.GreaterOrEqual(t, e.time, events[i-2].time)
		}
		events = append(events, e)
	}
	return h, events
}

func printed(events []event) string {
	var all strings.Builder
	for _, e := range events {
		if e.code == "o" {
			all.WriteString(e.data)
		}
	}
	return all.String()
}

func create(t testing.TB) (*Recorder, string) {
	path := filepath.Join(t.TempDir(), "a.cast")
	r, err := NewRecorder(path, func(err error) { t.Errorf("something was left out: %v", err) })
	require.NoError(t, err)
	return r, path
}

func TestReplay(t *testing.T) {
	t.Setenv("TERM", "xterm-256color")
	r, path := create(t)
	r.Resize(24, 80)
	r.Output([]byte("\x1b[1m<gr\xc3"))
	r.Output([]byte("\xbc\xc3\x9f & e>\r\n\xff"))
	r.Resize(24, 80)
	r.Resize(30, 90)
	r.Output([]byte("\xe2\x82"))
	require.NoError(t, r.Close())

	h, events := play(t, path)
	assert.Equal(t, 2, h.Version)
	assert.EqualValues(t, 80, h.Width)
	assert.EqualValues(t, 24, h.Height)
	assert.Equal(t, map[string]string{"TERM": "xterm-256color"}, h.Env)
	for i := range events {
		events[i].time = 0
	}
	assert.Equal(t, []event{
		{0, "o", "\x1b[1m<gr"}, {0, "o", "üß & e>\r\n\uFFFD"}, {0, "r", "90x30"}, {0, "o", "\uFFFD\uFFFD"},
	}, events)
	info, err := os.Stat(path)
	require.NoError(t, err)
	assert.Equal(t, fs.FileMode(0o600), info.Mode())
}

// TestReplaces what is there, for nobody else to read.
func TestReplaces(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.cast")
	require.NoError(t, os.WriteFile(path, bytes.Repeat([]byte("x\n"), 1000), 0o644))
	r, err := NewRecorder(path, nil)
	require.NoError(t, err)
	r.Resize(24, 80)
	require.NoError(t, r.Close())
	_, events := play(t, path)
	assert.Empty(t, events)
	info, err := os.Stat(path)
	require.NoError(t, err)
	assert.Equal(t, fs.FileMode(0o600), info.Mode())
}

func TestRefuses(t *testing.T) {
	dir := t.TempDir()
	for name, c := range map[string]struct {
		make func(path string) error
		says string
	}{
		"link": {func(path string) error { return os.Symlink("elsewhere", path) }, "is a symbolic link"},
		"dir":  {func(path string) error { return os.Mkdir(path, 0o700) }, "is not a regular file"},
		"fifo": {func(path string) error { return syscall.Mkfifo(path, 0o600) }, "is not a regular file"},
	} {
		path := filepath.Join(dir, name)
		require.NoError(t, c.make(path))
		_, err := NewRecorder(path, nil)
		require.ErrorContains(t, err, c.says)
	}
	assert.NoFileExists(t, filepath.Join(dir, "elsewhere"))
}

// The disk is full in the middle of a line. The recording then lacks whole lines, and has
// the ones after that.
func TestDiskIsFull(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.cast")
	file, _, err := disk.OpenWrite(path)
	require.NoError(t, err)
	l := &lines{file: file}
	full := false
	disk.TestOnlyObserver = func(op disk.Op) error {
		if full && op.Kind == disk.OpWrite {
			return &disk.Torn{N: len(op.Data) / 2, Then: func() error { return syscall.ENOSPC }}
		}
		return nil
	}
	defer func() { disk.TestOnlyObserver = nil }()
	write := func(text string) error { _, err := l.Write([]byte(text)); return err }
	require.NoError(t, write("{\"version\": 2}\n[1, \"o\", \"on"))
	require.NoError(t, write("e\"]\n[2, \"o\", "))
	full = true
	require.ErrorIs(t, write("\"two\"]\n[3, \"o\","), syscall.ENOSPC)
	full = false
	require.NoError(t, write("\"three\"]\n"))
	require.NoError(t, file.Close())
	_, events := play(t, path)
	assert.Equal(t, []event{{1, "o", "one"}, {3, "o", "three"}}, events)
}

func FuzzRecorder(f *testing.F) {
	f.Add([]byte("plain"), uint8(3))
	f.Add([]byte("\xe2\x82\xac\xf0\x9f\x98\x80\xff\xc3"), uint8(1))
	f.Add([]byte("\xf0\x9f\x98\xe2\x28\xa1\"\\\n\x00"), uint8(2))
	f.Fuzz(func(t *testing.T, b []byte, piece uint8) {
		r, path := create(t)
		r.Resize(24, 80)
		for rest := b; len(rest) > 0; {
			n := min(len(rest), 1+int(piece))
			r.Output(rest[:n])
			rest = rest[n:]
		}
		require.NoError(t, r.Close())
		_, events := play(t, path)
		assert.Equal(t, string([]rune(string(b))), printed(events))
	})
}
