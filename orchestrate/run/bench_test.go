package run_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"heartbeat/orchestrate/run"
)

// long makes a run with n events, the last of which requests an effect.
func long(t testing.TB, n int) *run.Run {
	t.Helper()
	dir := write(t, runJSON)
	journal := filepath.Join(dir, "journal")
	require.NoError(t, os.Mkdir(journal, 0o700))
	put(t, journal, 1, `{"type":"RUN_CREATED","data":{}}`)
	for seq := 2; seq <= n; seq++ {
		effect := seq / 2
		text := fmt.Sprintf(`{"type":"EFFECT_REQUESTED","recordedAt":"2026-11-21T20:25:49.939Z","data":{"effectId":"01M7ZWJR36XQ2QMX07%08d",`+
			`"invocationKey":"p1:S%06d:work","invocationHash":"7951c86fd3552b0b7d02bdb90373e283d753753f7035fd6e6881614c375d0797","stepId":"S%06d",`+
			`"taskId":"work","kind":"agent","label":"work","taskDefRef":"tasks/01M7ZWJR36XQ2QMX07%08d/task.json"}}`, effect, effect, effect, effect)
		if seq%2 == 1 {
			text = fmt.Sprintf(`{"type":"EFFECT_RESOLVED","data":{"effectId":"01M7ZWJR36XQ2QMX07%08d","status":"ok"}}`, effect)
		}
		put(t, journal, seq, text)
	}
	r, err := run.Open(dir)
	require.NoError(t, err)
	return r
}

func put(t testing.TB, journal string, seq int, text string) {
	t.Helper()
	name := fmt.Sprintf("%06d.01M7ZWJR3K97NXC3V0%08d.json", seq, seq)
	require.NoError(t, os.WriteFile(filepath.Join(journal, name), []byte(text), 0o600))
}

func BenchmarkState(b *testing.B) {
	for _, n := range []int{10, 1000, 5000} {
		r := long(b, n)
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			for b.Loop() {
				s, err := r.State()
				if err != nil || s.Status != run.Waiting {
					b.Fatal(s.Status, err)
				}
			}
		})
	}
}
