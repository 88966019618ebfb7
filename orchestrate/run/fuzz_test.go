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
		r, err := parseRun("/run", text)
		if err == nil {
			assert.NotEmpty(t, r.ID())
			assert.NotEmpty(t, r.ProcessID())
			return
		}
		assert.True(t, errors.Is(err, ErrCorrupt) || errors.Is(err, ErrLayout), err)
	})
}

// FuzzEvent adds any event to a state.
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
		s := State{effects: map[string]EffectStatus{}, keys: map[string]bool{}}
		if s.apply(e) == nil {
			assert.Equal(t, 1, s.LastSeq)
			for _, x := range s.Pending {
				assert.Equal(t, Requested, s.Effect(x.ID))
			}
		}
	})
}

func FuzzTask(f *testing.F) {
	seeds(f, "*/tasks/*/task.json")
	f.Add([]byte(`{"kind":"breakpoint","metadata":{"payload":[{}]},"breakpoint":null}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		task, err := (&Run{dir: "/run"}).parseTask(text)
		if err != nil {
			return
		}
		if task.InputsPath != "" {
			rel, err := filepath.Rel("/run", task.InputsPath)
			require.NoError(t, err)
			assert.True(t, filepath.IsLocal(rel), task.InputsPath)
		}
		assert.Equal(t, task.Kind == "breakpoint", task.Question != "")
	})
}
