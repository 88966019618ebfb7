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
	"heartbeat/internal/meter"
	"heartbeat/internal/price"
	"heartbeat/internal/testing/crash"
)

func TestMain(m *testing.M) { crash.Main(m, nil) }

func TestNames(t *testing.T) {
	assert.Equal(t, ".meter-"+session, meter.Name(session))
	assert.Equal(t, ".meter-a_B-9", meter.Name("a_B-9"))
	seen := map[string]bool{}
	for _, name := range []string{"", "a/b", "../../etc/passwd", "a.b", "é", strings.Repeat("x", 65), "a\x00", "a\n", ".", "@", "[", "`", "{"} {
		got := meter.Name(name)
		assert.Regexp(t, `^\.meter-\.[0-9a-f]+$`, got)
		assert.False(t, seen[got])
		seen[got] = true
	}
}

func TestNoFileIsNoState(t *testing.T) {
	s, err := meter.Load(t.TempDir(), session)
	require.NoError(t, err)
	assert.Nil(t, s)
}

// A file that is torn anywhere reads as an older state, or as none, and the count goes on.
func TestTornFiles(t *testing.T) {
	r := newRig(t)
	r.write(prompt("one"), r.answer(10, 1))
	first := r.advance(r.said("a", "0.001", 10, 1))
	r.write(r.answer(10, 1))
	second := r.advance(r.said("a", "0.002", 10, 1))
	path := filepath.Join(r.dir, meter.Name(session))
	whole, err := os.ReadFile(path)
	require.NoError(t, err)
	const half = 512 << 10
	for _, cut := range []int{0, 1, 20, 43, 44, 100, 300, half - 1, half, half + 30, half + 44, half + 200, len(whole) - 1} {
		for _, with := range [][]byte{nil, make([]byte, 50), []byte("garbage")} {
			torn := append(bytes.Clone(whole[:cut]), with...)
			require.NoError(t, os.WriteFile(path, torn, 0o600))
			s, err := meter.Load(r.dir, session)
			require.NoError(t, err)
			if s != nil {
				assert.Contains(t, []price.Amount{first.Spent, second.Spent}, s.Spent)
				assert.Equal(t, first.ID, s.ID)
			}
			s, err = meter.Advance(r.dir, r.said("a", "0.002", 10, 1))
			require.NoError(t, err)
			assert.Equal(t, second.Spent, s.Spent, "counted anew or gone on")
		}
	}
}

// A writer that is killed in the middle of its write leaves the state before.
func TestKilledAmidTheWrite(t *testing.T) {
	r := newRig(t)
	r.write(prompt("one"), r.answer(10, 1))
	before := r.advance(r.said("a", "0.001", 10, 1))
	for n := range 600 {
		disk.TestOnlyObserver = func(op disk.Op) error {
			if op.Kind == disk.OpWrite {
				return &disk.Torn{N: n, Then: func() error { return unix.EIO }}
			}
			return nil
		}
		_, err := meter.Advance(r.dir, r.said("a", "0.002", 10, 1))
		disk.TestOnlyObserver = nil
		s, loadErr := meter.Load(r.dir, session)
		require.NoError(t, loadErr)
		require.NotNil(t, s)
		assert.Equal(t, before.ID, s.ID)
		if err != nil && s.Spent != before.Spent {
			assert.Equal(t, usd(t, "0.002"), s.Spent.Said, "all of it was written")
			break
		}
	}
	assert.Equal(t, usd(t, "0.003"), r.advance(r.said("a", "0.003", 10, 1)).Spent.Said)
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
		_, err := meter.Advance(r.dir, r.said("a", "0.001", 10, 1))
		disk.TestOnlyObserver = nil
		if calls < n {
			require.NoError(t, err)
			return
		}
		assert.ErrorIs(t, err, unix.ENOSPC)
		assert.Equal(t, usd(t, "0.001"), r.advance(r.said("a", "0.001", 10, 1)).Spent.Said)
	}
}

// Meters of one session at once lose nothing, and a reader never sees less than before.
func TestManyMetersAtOnce(t *testing.T) {
	r := newRig(t)
	r.advance(r.started("a", "0"))
	r.write(prompt("one"))
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
	for i := range 30 {
		r.write(r.answer(10, 1))
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				_, err := meter.Advance(r.dir, r.silent())
				assert.NoError(t, err)
			})
		}
		all.Go(func() {
			_, err := meter.Advance(r.dir, r.said("a", fmt.Sprint(i+1), 10, 1))
			assert.NoError(t, err)
		})
		all.Wait()
	}
	close(done)
	readers.Wait()
	s := r.advance(r.silent())
	assert.Equal(t, usd(t, "30"), s.Spent.Said)
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
		require.NoError(t, make(filepath.Join(r.dir, meter.Name(session))), name)
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
		s, err := meter.Advance(r.dir, r.said("a", "0.5", 0, 0))
		assert.Error(t, err, name)
		assert.Equal(t, usd(t, "0.5"), s.Spent.Said)
		s, err = meter.Load(r.dir, session)
		require.NoError(t, err)
		assert.Equal(t, usd(t, "0.5"), s.Spent.Said)
	}
	r := newRig(t)
	assert.Equal(t, usd(t, "0.5"), r.advance(r.said("a", "0.5", 10, 1)).Spent.Said, "no transcript at all")
}

// A transcript that was cut off or replaced counts from where it ends then.
func TestReplacedTranscripts(t *testing.T) {
	r := newRig(t)
	r.write(prompt("one"), r.answer(10, 1), prompt("two"), r.answer(10, 1))
	before := r.advance(r.said("a", "0.01", 10, 1))
	require.NoError(t, os.WriteFile(r.path, []byte(prompt("x")+"\n"+message("other", 500, 500)+"\n"), 0o600))
	s := r.advance(r.silent())
	assert.Equal(t, before.Spent, s.Spent)
	assert.Empty(t, s.Marks)
	next := r.write(prompt("three"), message("new", 7, 7))
	s = r.advance(r.said("a", "0.02", 7, 7))
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
	s := r.advance(r.said("a", "0.5", 10, 1))
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

func TestOldFilesGo(t *testing.T) {
	r := newRig(t)
	_, err := meter.Advance(r.dir, meter.Reading{Session: "old"})
	require.NoError(t, err)
	ours, err := os.ReadFile(filepath.Join(r.dir, meter.Name("old")))
	require.NoError(t, err)
	for name, gone := range map[string]bool{".meter-old": true, ".meter-young": false, ".meter-own": false, ".meters": false, "inbox.jsonl": false} {
		path, content := filepath.Join(r.dir, name), ours
		if name == ".meter-own" {
			content = []byte("of a person")
		}
		require.NoError(t, os.WriteFile(path, content, 0o600))
		if name != ".meter-young" {
			old := unix.Timeval{Sec: 1_600_000_000}
			require.NoError(t, unix.Utimes(path, []unix.Timeval{old, old}))
		}
		defer func() {
			there, err := disk.Exists(path)
			require.NoError(t, err)
			assert.Equal(t, !gone, there, name)
		}()
	}
	r.advance(r.silent())
}

func TestSessionsWithoutAName(t *testing.T) {
	for _, name := range []string{"", strings.Repeat("x", 257)} {
		_, err := meter.Advance(t.TempDir(), meter.Reading{Session: name})
		assert.ErrorContains(t, err, "name")
	}
}
