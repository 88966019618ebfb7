package meter_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"heartbeat/internal/disk"
	"heartbeat/internal/money/meter"
	"heartbeat/internal/money/price"
	"heartbeat/internal/testing/crash"
)

func TestMain(m *testing.M) { crash.Main(m, nil) }

func TestNoFileIsNoState(t *testing.T) {
	s, err := meter.Load(t.TempDir(), session)
	require.NoError(t, err)
	assert.Nil(t, s)
}

// A file that is torn anywhere is counted anew, or goes on; what is whole of others is kept.
func TestTornFiles(t *testing.T) {
	r := newRig(t)
	r.write(prompt("one"), r.answer(10, 1))
	_, err := meter.Advance(r.dir, meter.Reading{Session: "another", Transcript: r.path})
	require.NoError(t, err)
	whole := r.advance(r.silent())
	path := filepath.Join(r.dir, meter.Name)
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	for cut := 0; cut < len(text); cut += 7 {
		for _, with := range []string{"", "garbage", "garbage\n"} {
			require.NoError(t, os.WriteFile(path, append(bytes.Clone(text[:cut]), with...), 0o600))
			if s, err := meter.Load(r.dir, session); assert.NoError(t, err) && s != nil {
				assert.Equal(t, whole.Spent, s.Spent)
			}
		}
		s, err := meter.Look(r.dir, session, r.path)
		require.NoError(t, err)
		assert.Equal(t, whole.Spent, s.Spent)
		assert.Equal(t, whole.Spent, r.advance(r.silent()).Spent)
	}
}

// A writer that is killed in the middle of its write loses nothing.
func TestKilledAmidTheWrite(t *testing.T) {
	r := newRig(t)
	r.write(prompt("one"), r.answer(10, 1))
	r.advance(r.silent())
	for n := 0; n < 900; n += 9 {
		r.write(r.answer(10, 1))
		disk.TestOnlyObserver = func(op disk.Op) error {
			if op.Kind == disk.OpWrite {
				return &disk.Torn{N: n, Then: func() error { return unix.EIO }}
			}
			return nil
		}
		_, err := meter.Advance(r.dir, r.silent())
		disk.TestOnlyObserver = nil
		assert.EqualValues(t, n/9+2, r.advance(r.silent()).Spent.Requests)
		if err == nil {
			break
		}
	}
}

// The file has the last sessions, and no more.
func TestManySessions(t *testing.T) {
	r := newRig(t)
	r.write(prompt("one"), r.answer(10, 1))
	for i := range 20 {
		_, err := meter.Advance(r.dir, meter.Reading{Session: fmt.Sprint("s", i), Transcript: r.path})
		require.NoError(t, err)
		_, err = meter.Advance(r.dir, meter.Reading{Session: "s0", Transcript: r.path})
		require.NoError(t, err)
	}
	kept := 0
	for i := range 20 {
		if s, err := meter.Load(r.dir, fmt.Sprint("s", i)); assert.NoError(t, err) && s != nil {
			assert.EqualValues(t, 1, s.Spent.Requests)
			assert.True(t, i == 0 || i > 12)
			kept++
		}
	}
	assert.Equal(t, 8, kept)
	info, err := os.Stat(filepath.Join(r.dir, meter.Name))
	require.NoError(t, err)
	assert.Less(t, info.Size(), int64(8<<10))
}

// Each failing call is an error or harmless, and the next reading has everything.
func TestEveryCallMayFail(t *testing.T) {
	for n := 1; ; n++ {
		r := newRig(t)
		r.write(prompt("one"), r.answer(10, 1))
		calls := 0
		disk.TestOnlyObserver = func(disk.Op) error {
			if calls++; calls == n {
				return unix.ENOSPC
			}
			return nil
		}
		_, err := meter.Advance(r.dir, r.silent())
		disk.TestOnlyObserver = nil
		if calls < n {
			require.NoError(t, err)
			return
		}
		assert.ErrorIs(t, err, unix.ENOSPC)
		assert.EqualValues(t, 1, r.advance(r.silent()).Spent.Requests)
	}
}

// Meters of one session at once lose nothing, and a reader never sees less than before.
func TestManyMetersAtOnce(t *testing.T) {
	r := newRig(t)
	r.write(prompt("one"))
	r.advance(r.silent())
	done := make(chan struct{})
	var readers sync.WaitGroup
	readers.Go(func() {
		last := price.Amount{}
		for {
			s, err := meter.Load(r.dir, session)
			if assert.NoError(t, err) && assert.NotNil(t, s) {
				assert.GreaterOrEqual(t, s.Spent.Nanos, last.Nanos)
				assert.GreaterOrEqual(t, s.Spent.Requests, last.Requests)
				last = s.Spent
			}
			select {
			case <-done:
				return
			default:
			}
		}
	})
	for range 30 {
		r.write(r.answer(10, 1))
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				_, err := meter.Advance(r.dir, r.silent())
				assert.NoError(t, err)
			})
		}
		all.Wait()
	}
	close(done)
	readers.Wait()
	s := r.advance(r.silent())
	assert.Equal(t, int64(30*60_000), s.Spent.Nanos)
	assert.Equal(t, int64(30), s.Spent.Requests)
}

// What is in the file's place and is none of ours is left alone, and holds nobody up.
func TestForeignFiles(t *testing.T) {
	for name, make := range map[string]func(path string) error{
		"link":      func(path string) error { return os.Symlink("/etc/passwd", path) },
		"fifo":      func(path string) error { return unix.Mkfifo(path, 0o600) },
		"directory": func(path string) error { return os.Mkdir(path, 0o700) },
	} {
		r := newRig(t)
		require.NoError(t, make(filepath.Join(r.dir, meter.Name)), name)
		_, err := meter.Load(r.dir, session)
		assert.Error(t, err, name)
		_, err = meter.Advance(r.dir, r.silent())
		assert.Error(t, err, name)
	}
}

// A transcript that is a FIFO is not waited for; what else is known is booked.
func TestForeignTranscripts(t *testing.T) {
	for name, make := range map[string]func(path string) error{
		"fifo":      func(path string) error { return unix.Mkfifo(path, 0o600) },
		"directory": func(path string) error { return os.Mkdir(path, 0o700) },
		"device":    func(path string) error { return os.Symlink("/dev/zero", path) },
	} {
		r := newRig(t)
		require.NoError(t, make(r.path), name)
		s, err := meter.Advance(r.dir, r.silent())
		assert.Error(t, err, name)
		assert.NotNil(t, s)
	}
}

// A transcript that was cut off or replaced counts from where it ends then.
func TestReplacedTranscripts(t *testing.T) {
	r := newRig(t)
	r.write(prompt("one"), r.answer(10, 1), prompt("two"), r.answer(10, 1))
	before := r.advance(r.silent())
	require.NoError(t, os.WriteFile(r.path, []byte(prompt("x")+"\n"+message("other", 500, 500)+"\n"), 0o600))
	s := r.advance(r.silent())
	assert.Equal(t, before.Spent, s.Spent)
	assert.Empty(t, s.Marks)
	next := r.write(prompt("three"), message("new", 7, 7))
	s = r.advance(r.silent())
	assert.Equal(t, int64(27), s.Spent.Tokens.Input)
	assert.Equal(t, before.Spent, s.Before(next))

	longer := strings.Repeat("x", 10_000) + "\n"
	require.NoError(t, os.WriteFile(r.path, []byte(longer), 0o600))
	assert.Equal(t, s.Spent, r.advance(r.silent()).Spent)
}

// A session that is resumed in another folder has its transcript copied there.
func TestAMovedTranscript(t *testing.T) {
	r := newRig(t)
	r.write(prompt("one"), r.answer(10, 1))
	r.advance(r.silent())
	moved := filepath.Join(r.dir, "moved.jsonl")
	require.NoError(t, os.Rename(r.path, moved))
	r.path = moved
	r.write(r.answer(10, 1))
	assert.Equal(t, int64(2), r.advance(r.silent()).Spent.Requests)
}

// A huge transcript is counted in parts, unless it is the end.
func TestAHugeTranscript(t *testing.T) {
	r := newRig(t)
	r.write(prompt("one"), r.answer(10, 1))
	f, err := os.OpenFile(r.path, os.O_WRONLY|os.O_APPEND, 0)
	require.NoError(t, err)
	line := []byte(`{"type":"system","content":"` + strings.Repeat("x", 1<<20) + "\"}\n")
	for range 20 {
		_, err := f.Write(line)
		require.NoError(t, err)
	}
	require.NoError(t, f.Close())
	r.write(r.answer(10, 1))
	s := r.advance(r.silent())
	assert.Equal(t, int64(1), s.Spent.Requests)
	assert.Less(t, s.Read, int64(10<<20))
	assert.Equal(t, int64(2), r.advance(r.final()).Spent.Requests)

	// A line without end is passed over once it ends.
	r.append(strings.Repeat("y", 40<<20))
	r.advance(r.silent())
	r.append("\n")
	r.write(r.answer(10, 1))
	assert.Equal(t, int64(3), r.advance(r.final()).Spent.Requests)
}

// The files of earlier releases go, and nothing else.
func TestOldFilesGo(t *testing.T) {
	r := newRig(t)
	r.advance(r.silent())
	slot := "0123456789abcdef 0000000000000001 00000012\n{\"v\":2}"
	for name, content := range map[string]string{
		".meter-old": slot, ".meter-" + session: strings.Repeat("\x00", 512<<10) + slot,
		".meter-readings.csv": "2026-11-22,kWh,4\n", ".meters": slot, "inbox.jsonl": slot,
	} {
		require.NoError(t, os.WriteFile(filepath.Join(r.dir, name), []byte(content), 0o600))
	}
	require.NoError(t, os.Mkdir(filepath.Join(r.dir, ".meter-folder"), 0o700))
	require.NoError(t, meter.Prune(r.dir))
	all, _, err := disk.Names(r.dir, 100)
	require.NoError(t, err)
	assert.ElementsMatch(t, []string{".meter", ".meter-folder", ".meter-readings.csv", ".meters", "inbox.jsonl"}, all)
}

func TestSessionsWithoutAName(t *testing.T) {
	for _, name := range []string{"", strings.Repeat("x", 257)} {
		_, err := meter.Advance(t.TempDir(), meter.Reading{Session: name})
		assert.ErrorContains(t, err, "name")
	}
}
