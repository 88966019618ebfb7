package run

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// seeds are the recorded files that match a pattern.
func seeds(f *testing.F, pattern string) {
	paths, err := filepath.Glob(filepath.Join("testdata", pattern))
	require.NoError(f, err)
	require.NotEmpty(f, paths)
	for _, path := range paths {
		text, err := os.ReadFile(path)
		require.NoError(f, err)
		f.Add(text)
	}
}

func FuzzRun(f *testing.F) {
	seeds(f, "*/run.json")
	f.Fuzz(func(t *testing.T, text []byte) {
		r, err := parse("/run", text)
		if err == nil {
			assert.NotEmpty(t, r.ID())
			assert.NotEmpty(t, r.ProcessID())
			return
		}
		assert.True(t, errors.Is(err, ErrCorrupt) || errors.Is(err, ErrLayout), err)
	})
}

// FuzzEvent reads two events: from a cache, and from the journal, with the same result.
func FuzzEvent(f *testing.F) {
	seeds(f, "*/journal/*.json")
	f.Add([]byte("null"))
	f.Add([]byte(" [1]"))
	f.Add([]byte(`{"type":"EFFECT_REQUESTED","data":{"labels":["a","\ud800",1]}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		e, err := parseEvent(1, text)
		if err != nil {
			return
		}
		require.True(t, json.Valid(text))
		x := &index{}
		if x.add(e) != nil {
			return
		}
		c, err := parseCache(mustPart(t, (&cache{index: *x}).text("r")), "r")
		require.NoError(t, err)
		want, got := x.state(), c.state()
		want.index, got.index = nil, nil
		assert.Equal(t, want, got)
	})
}

func mustPart(t *testing.T, text []byte) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "cache")
	require.NoError(t, os.WriteFile(path, text, 0o600))
	c := readCache(path, "r")
	require.NotNil(t, c)
	require.NoError(t, c.load())
	n := len(text) - len(c.effects.rows)
	line := 0
	for text[line] != '\n' {
		line++
	}
	return text[line+1 : n]
}

func FuzzTask(f *testing.F) {
	seeds(f, "*/tasks/*/task.json")
	f.Add([]byte(`{"kind":"breakpoint","metadata":{"payload":[{}]},"breakpoint":null}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		task, err := (&Run{dir: "/run"}).parseTask(text)
		if err != nil {
			return
		}
		for _, raw := range [][]byte{task.Inputs, task.Metadata, task.Execution} {
			assert.True(t, raw == nil || json.Valid(raw))
		}
		if task.InputsPath != "" {
			rel, err := filepath.Rel("/run", task.InputsPath)
			require.NoError(t, err)
			assert.True(t, filepath.IsLocal(rel), task.InputsPath)
		}
		if task.Breakpoint != nil {
			assert.NotEmpty(t, task.Breakpoint.Question)
		}
	})
}

// FuzzCache reads files that a crash or another program may leave.
func FuzzCache(f *testing.F) {
	f.Add([]byte(`{"run":"r","seq":1,"pending":[[1,2]]}` + "\n{}"))
	f.Add([]byte(`{"run":"r","failure":[1,-2]}` + "\n"))
	f.Fuzz(func(t *testing.T, part []byte) {
		if c, err := parseCache(part, "r"); err == nil {
			c.state()
		}
	})
}
