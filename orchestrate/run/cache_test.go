package run_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/orchestrate/run"
)

// cached is a recorded run with a current cache.
func cached(t testing.TB, name string) (r *run.Run, cache string) {
	t.Helper()
	r, cache = recorded(t, name), filepath.Join(t.TempDir(), "cache")
	settle(t, r)
	state(t, r, cache)
	require.FileExists(t, cache)
	return r, cache
}

func TestCacheSaysTheSame(t *testing.T) {
	for _, name := range []string{"waiting", "completed", "failed"} {
		r, cache := cached(t, name)
		want := state(t, r, "")
		sameState(t, want, state(t, r, cache))
		info, err := os.Lstat(cache)
		require.NoError(t, err)
		assert.Equal(t, "-rw-------", info.Mode().String())
	}
}

// An old event that was edited in place is noticed with the next change in the folder.
func TestCacheIsUsed(t *testing.T) {
	r, cache := cached(t, "waiting")
	j := journal(filepath.Join(r.Dir(), "journal"))
	require.NoError(t, os.WriteFile(j.path(j.name(t, 2)), []byte("{"), 0o600))
	state(t, r, cache)
	_, err := r.State("")
	require.ErrorIs(t, err, run.ErrCorrupt)
	j.put(t, "000013.01ZZZZ.json", "{}")
	_, err = r.State(cache)
	require.ErrorIs(t, err, run.ErrCorrupt)
}

// An edit of the last event is noticed at once.
func TestLastEventEditedInPlace(t *testing.T) {
	r, cache := cached(t, "waiting")
	j := journal(filepath.Join(r.Dir(), "journal"))
	require.NoError(t, os.WriteFile(j.path(j.name(t, 12)), nil, 0o600))
	_, err := r.State(cache)
	require.ErrorIs(t, err, run.ErrCorrupt)
}

// A growing journal is read after each event: at once, and when it counts as settled.
func TestEventByEvent(t *testing.T) {
	from := recorded(t, "waiting")
	all := journal(filepath.Join(from.Dir(), "journal"))
	dir, cache := write(t, runJSON), filepath.Join(t.TempDir(), "cache")
	grown := journal(filepath.Join(dir, "journal"))
	require.NoError(t, os.Mkdir(string(grown), 0o700))
	r := open(t, dir)
	assert.Equal(t, run.State{Status: run.Created}.Status, state(t, r, cache).Status)
	for seq := 1; seq <= 12; seq++ {
		grown.put(t, all.name(t, seq), all.text(t, seq))
		for range 3 {
			want := state(t, r, "")
			require.Equal(t, seq, want.LastSeq)
			sameState(t, want, state(t, r, cache))
			if seq%3 == 0 {
				settle(t, r)
			}
		}
	}
}

// Other files in the place of the run's cache are ignored.
func TestForeignCaches(t *testing.T) {
	r, cache := cached(t, "waiting")
	want := state(t, r, "")
	text, err := os.ReadFile(cache)
	require.NoError(t, err)
	_, other := cached(t, "failed")
	another, err := os.ReadFile(other)
	require.NoError(t, err)
	for what, content := range map[string][]byte{
		"empty": nil, "garbage": []byte("x\ny\n"), "another run's": another, "zeros": make([]byte, len(text)),
		"another version's": bytes.Replace(text, []byte("cache-2"), []byte("cache-0"), 1),
		"more":              append(bytes.Clone(text), text...),
		"wrong kind":        bytes.Replace(text, []byte("my-kind"), []byte("my-mind"), 1),
		"wrong rows":        append(bytes.Clone(text[:len(text)-1]), 2),
	} {
		require.NoError(t, os.WriteFile(cache, content, 0o600))
		checkAll(t, r, want, cache, what)
	}
	for size := 0; size < len(text); size += 1 + size/20 {
		require.NoError(t, os.WriteFile(cache, text[:size], 0o600))
		checkAll(t, r, want, cache, fmt.Sprintf("cut at %d", size))
	}
}

func checkAll(t testing.TB, r *run.Run, want run.State, cache, what string) {
	t.Helper()
	s := state(t, r, cache)
	sameState(t, want, s)
	for _, id := range []string{"01M7ZXJM26ZT7MB9Y1KYCRH9YV", "01M7ZXJPCQYAKACQY2BQ57ECR2", "none"} {
		expected, err := want.Effect(id)
		require.NoError(t, err)
		got, err := s.Effect(id)
		require.NoError(t, err)
		require.Equal(t, expected, got, what)
	}
}

// An effect is found after the cache was removed.
func TestEffectWithoutItsCache(t *testing.T) {
	r, cache := cached(t, "waiting")
	s := state(t, r, cache)
	require.NoError(t, os.Remove(cache))
	got, err := s.Effect("01M7ZXJM26ZT7MB9Y1KYCRH9YV")
	require.NoError(t, err)
	assert.Equal(t, run.ResolvedOK, got)
}

// It is no error if no cache can be written.
func TestCacheThatCannotBe(t *testing.T) {
	r := recorded(t, "waiting")
	settle(t, r)
	target := filepath.Join(t.TempDir(), "target")
	require.NoError(t, os.WriteFile(target, []byte("mine"), 0o600))
	link := filepath.Join(t.TempDir(), "link")
	require.NoError(t, os.Symlink(target, link))
	for _, cache := range []string{t.TempDir(), filepath.Join(t.TempDir(), "no", "cache"), link} {
		sameState(t, state(t, r, ""), state(t, r, cache))
		sameState(t, state(t, r, ""), state(t, r, cache))
	}
	text, err := os.ReadFile(target)
	require.NoError(t, err)
	assert.Equal(t, "mine", string(text), "a link is not followed")
}

// Several processes read while the journal grows and is repaired.
func TestSideBySide(t *testing.T) {
	r, cache := cached(t, "waiting")
	j := journal(filepath.Join(r.Dir(), "journal"))
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			last := 0
			for range 100 {
				s, err := r.State(cache)
				if assert.NoError(t, err) {
					assert.GreaterOrEqual(t, s.LastSeq, last)
					last = s.LastSeq
				}
			}
		})
	}
	for seq := 13; seq < 60; seq++ {
		j.put(t, fmt.Sprintf("%06d.01ZZ%04d.json.tmp", seq, seq), "{}")
		require.NoError(t, os.Rename(j.path(fmt.Sprintf("%06d.01ZZ%04d.json.tmp", seq, seq)), j.path(fmt.Sprintf("%06d.01ZZ%04d.json", seq, seq))))
	}
	all.Wait()
	assert.Equal(t, 59, state(t, r, cache).LastSeq)
}

// run:repair-journal replaces the journal by another folder, with fewer events or as many.
func TestNewJournal(t *testing.T) {
	for _, events := range []int{6, 12, 11} {
		r, cache := cached(t, "waiting")
		old := journal(filepath.Join(r.Dir(), "journal"))
		next := journal(filepath.Join(r.Dir(), "journal.repaired"))
		require.NoError(t, os.Mkdir(string(next), 0o700))
		for seq := 1; seq <= events; seq++ {
			next.put(t, fmt.Sprintf("%06d.01ZZ%04d.json", seq, seq), old.text(t, seq))
		}
		require.NoError(t, os.Rename(string(old), string(old)+".bak"))
		require.NoError(t, os.Rename(string(next), string(old)))
		s := state(t, r, cache)
		assert.Equal(t, events, s.LastSeq)
		sameState(t, state(t, r, ""), s)
	}
}
