package orchestrate_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What is passed while the run's directory, or a part of its journal, is away for a moment is asked once more when it
// is back: an effect, a failure and the proof.
func TestRunAwayForAMoment(t *testing.T) {
	for name, c := range map[string]struct{ process, text string }{
		"an effect": {`export async function process(inputs, ctx) { return await ctx.task(agent,{q:'a'}); }`, "agent a"},
		"a failure": {`export async function process() { throw new Error('it is broken'); }`, "it is broken"},
		"the proof": {`export async function process() { return 1; }`, "<promise>"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRunRig(t, c.process)
			if r.step().Waits == 0 {
				r.step()
			}
			away := r.run + "-away"
			require.NoError(t, os.Rename(r.run, away))
			out, said := r.fire("Stop", "s", "hello", false, os.Getpid())
			assert.Empty(t, out.Raw)
			assert.Contains(t, said, "there is no run in "+r.run)
			require.NoError(t, os.Rename(away, r.run))
			out, said = r.fire("Stop", "s", "hello", false, os.Getpid())
			require.Contains(t, out.Get("reason").String(), c.text, said)
			queue, err := os.ReadFile(r.inbox)
			require.NoError(t, err)
			assert.Equal(t, 2, strings.Count(string(queue), "\n"), "asked twice in all")
			assert.NotContains(t, r.standing(), "goes no further")
		})
	}
	t.Run("half a journal", func(t *testing.T) {
		r := newRunRig(t, `export async function process(inputs, ctx) { return await ctx.task(agent,{q:'a'}); }`)
		r.step()
		all, err := filepath.Glob(filepath.Join(r.run, "journal", "*.json"))
		require.NoError(t, err)
		last := all[len(all)-1]
		require.NoError(t, os.Rename(last, last+"~"))
		with := *r
		with.run = filepath.Join(r.dir, "none") // no step is taken meanwhile
		out, said := with.fire("Stop", "s", "hello", false, os.Getpid())
		assert.Empty(t, out.Raw)
		assert.Contains(t, said, "run r1 has no effect")
		require.NoError(t, os.Rename(last+"~", last))
		r.drive()
		assert.Equal(t, "completed", r.state())
		assert.Len(t, r.texts, 3, "begin, the effect, the end")
	})
}

// After a move of the project, a letter of its old place holds nothing up: it names paths that are no more.
func TestMovedWithALetter(t *testing.T) {
	r := newRunRig(t, `export async function process(inputs, ctx) { return await ctx.task(agent,{q:'a'}); }`)
	queued := r.step().Queued[0]
	out, err := r.heartbeat("cancel", "--inbox", r.inbox, queued)
	require.NoError(t, err, out)
	require.Len(t, r.step().Held, 1)
	moved := filepath.Join(t.TempDir(), "moved")
	require.NoError(t, os.Rename(r.dir, moved))
	r.inbox, r.run, r.dir = strings.Replace(r.inbox, r.dir, moved, 1), strings.Replace(r.run, r.dir, moved, 1), moved
	code, err := os.ReadFile(filepath.Join(r.run, "run.json"))
	require.NoError(t, err)
	assert.NotContains(t, string(code), "TestMovedWithALetter", "its process is named by a relative path")
	assert.Equal(t, []string{queued}, r.step().Queued)
	r.drive()
	assert.Equal(t, "completed", r.state())
}

// An entry of somebody else's whose members and id look like a run's is delivered, whatever they name.
func TestEntryLikeARuns(t *testing.T) {
	r := newRunRig(t, `export async function process() { return 1; }`)
	own := `{"prompt":"mine","id":"nightly/1","run":"nightly","run_dir":"/data/nightly","kind":"build"}` + "\n" +
		`{"prompt":"as well","id":"nightly/2","run":"nightly","run_dir":"/data/nightly","effect":"none"}` + "\n"
	require.NoError(t, os.WriteFile(r.inbox, []byte(own), 0o600))
	out, said := r.fire("Stop", "s", "hello", false, os.Getpid())
	assert.Equal(t, "mine", out.Get("reason").String(), said)
	out, said = r.fire("Stop", "s", "done", true, os.Getpid())
	assert.Equal(t, "as well", out.Get("reason").String(), said)
}
