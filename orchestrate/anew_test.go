package orchestrate_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A run that is made anew under the id of one that is done is a run of its own: it is driven, and the agent is asked
// for its proof, and about its failures.
func TestRunMadeAnew(t *testing.T) {
	const failing = `import { existsSync } from 'node:fs';
export async function process() { if (!existsSync('mended')) throw new Error('it is broken'); return 1; }`
	for name, c := range map[string]struct {
		process, status string
		entries         int
	}{
		"done":                 {`export async function process() { return 1; }`, "it is done", 1},
		"failed":               {failing, "the run failed 4 times in a row", 3},
		"of an older release":  {`export async function process() { return 1; }`, "it is done", 1},
		"its ledger was taken": {failing, "the run failed 4 times in a row", 3},
	} {
		t.Run(name, func(t *testing.T) {
			r := newProcessRig(t, c.process)
			for range 2 {
				out, err := r.heartbeat("run", "start", "--inbox", r.inbox, "--babysitter", r.babysitter, "--entry", "p.mjs", "--process-id", "p", "--run-id", "r1")
				require.NoError(t, err, out)
				assert.Contains(t, out, "1 entry queued")
				r.texts = nil
				r.drive()
				assert.Len(t, r.texts, 1+c.entries, "%q", r.texts)
				assert.Contains(t, r.standing(), c.status)
				require.NoError(t, os.RemoveAll(r.run))
				if name == "of an older release" {
					r.edit(func(ledger map[string]any) { delete(ledger, "made") })
				}
				if name == "its ledger was taken" {
					require.NoError(t, os.Remove(r.ledger()))
				}
			}
		})
	}
}

// A run has one path for its inbox, also where a link leads to its project.
func TestRunByALink(t *testing.T) {
	r := newRunRig(t, `export async function process() { return 1; }`)
	link := filepath.Join(t.TempDir(), "link")
	require.NoError(t, os.Symlink(r.dir, link))
	drive := func(run string) (string, error) {
		return r.heartbeat("orchestrate", "--inbox", r.inbox, "--run", run, "--once", "--babysitter", r.babysitter)
	}
	out, err := drive(r.run)
	require.NoError(t, err, out)
	out, err = drive(filepath.Join(link, ".a5c", "runs", "r1"))
	require.Error(t, err)
	assert.Contains(t, out, "this inbox drives the run of that id in "+r.run+": name it by that path")
}

// A turn that ends while the run cannot be read leaves its effect without a result: once the run is mended, the agent
// is asked again.
func TestAnsweredWhileDamaged(t *testing.T) {
	r := newRunRig(t, `export async function process(inputs, ctx) { return await ctx.task(odd, {q:'x'}); }`)
	pid := os.Getpid()
	damage := filepath.Join(r.run, "journal", "000003.01M9.json")
	out, said := r.fire("Stop", "s1", "hello", false, pid)
	require.Contains(t, out.Get("reason").String(), "odd x", said)
	require.NoError(t, os.WriteFile(damage, []byte("{"), 0o600))
	out, said = r.fire("Stop", "s1", "I could not hand it over", true, pid)
	assert.Empty(t, out.Raw)
	assert.Contains(t, said, "the run is damaged")

	require.NoError(t, os.Remove(damage))
	r.drive()
	assert.Contains(t, r.texts[1], "odd x")
	assert.Equal(t, `{"ok":true}`, r.output())
	assert.Contains(t, r.standing(), "it is done")
}

// The code that a person accepts is run, although nothing has happened since the process ran. A question that it does
// not ask any more is no person's to answer.
func TestAcceptedCodeIsRun(t *testing.T) {
	isPerson(t)
	r := newProcessRig(t, `export async function process(inputs, ctx) { return await ctx.breakpoint({question:'Old?'}); }`)
	says := func(args ...string) string {
		t.Helper()
		out, err := r.heartbeat(append(args, "--inbox", r.inbox)...)
		require.NoError(t, err, out)
		return out
	}
	says("run", "start", "--babysitter", r.babysitter, "--entry", "p.mjs", "--process-id", "p", "--run-id", "r1")
	assert.Contains(t, says("breakpoint", "list"), "Old?")
	code, err := os.ReadFile(filepath.Join(r.dir, "p.mjs"))
	require.NoError(t, err)
	code = []byte(strings.Replace(string(code), "return await ctx.breakpoint({question:'Old?'})", "return await ctx.task(agent, {q:'new'})", 1))
	require.NoError(t, os.WriteFile(filepath.Join(r.dir, "p.mjs"), code, 0o600))
	assert.Contains(t, says("run", "accept-code", "r1", "--babysitter", r.babysitter), "1 entry queued")
	assert.NotContains(t, says("breakpoint", "list"), "Old?")
	assert.NotContains(t, says("notify", "--notify", "cat"), "Old?")
	assert.NotContains(t, says("run", "status"), "waits for a person")
	r.drive()
	assert.Contains(t, r.standing(), "it is done")
}
