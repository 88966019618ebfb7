package orchestrate_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/orchestrate"
)

func TestFormat(t *testing.T) {
	s := orchestrate.NewState("r1", "do it", 256, noon)
	b, err := s.Format()
	require.NoError(t, err)
	assert.Equal(t, `---
active: true
iteration: 1
max_iterations: 256
run_id: "r1"
started_at: "2026-11-20T12:00:00Z"
last_iteration_at: "2026-11-20T12:00:00Z"
iteration_times: 
---

do it
`, string(b))
}

func TestParseGarbage(t *testing.T) {
	defaults := orchestrate.State{Iteration: 1, MaxIterations: 256}
	for content, change := range map[string]func(*orchestrate.State){
		"":                                     func(*orchestrate.State) {},
		"no front matter":                      func(s *orchestrate.State) { s.Prompt = "no front matter" },
		"---\niteration: many\nactive: 1\n---": func(*orchestrate.State) {},
		"---\nmax_iterations: 0\n---\n":        func(s *orchestrate.State) { s.MaxIterations = 0 },
		"x\n---\nactive: 'True'\n---\n y\n":    func(s *orchestrate.State) { s.Active, s.Prompt = true, "y" },
		"---\niteration: 7":                    func(s *orchestrate.State) { s.Iteration, s.Prompt = 7, "---\niteration: 7" },
	} {
		want := defaults
		change(&want)
		assert.Equal(t, want, orchestrate.ParseState([]byte(content)), "%q", content)
	}
}

// FuzzParse: a state that was read can be written, and reads the same again.
func FuzzParse(f *testing.F) {
	for _, content := range garbage {
		f.Add([]byte(content))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		s := orchestrate.ParseState(b)
		written, err := s.Format()
		if s.Iteration < 0 || s.MaxIterations < 0 {
			require.Error(t, err)
			return
		}
		require.NoError(t, err)
		again := orchestrate.ParseState(written)
		again.Prompt, s.Prompt = "", ""
		assert.Equal(t, s, again)
		rewritten, err := orchestrate.ParseState(written).Format()
		require.NoError(t, err)
		assert.Equal(t, string(written), string(rewritten))
	})
}
