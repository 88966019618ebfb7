package orchestrate_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// step takes one step, and returns its report.
func (r *runRig) step(flags ...string) (report struct {
	Status  string
	Queued  []string
	Posted  []string
	Waits   int
	Refused []string
	Held    []struct{ Effect string }
}) {
	r.t.Helper()
	out, err := r.heartbeat(append([]string{"orchestrate", "--inbox", r.inbox, "--run", r.run, "--once", "--json", "--babysitter", r.babysitter}, flags...)...)
	require.NoError(r.t, err, out)
	require.NoError(r.t, json.Unmarshal([]byte(out), &report), out)
	return report
}

func (r *runRig) ledger() string { return filepath.Join(filepath.Dir(r.inbox), ".run-r1.json") }

// edit changes the ledger, as an agent's tools could.
func (r *runRig) edit(change func(map[string]any)) {
	r.t.Helper()
	var l map[string]any
	raw, err := os.ReadFile(r.ledger())
	require.NoError(r.t, err)
	require.NoError(r.t, json.Unmarshal(raw, &l))
	change(l)
	raw, err = json.Marshal(l)
	require.NoError(r.t, err)
	require.NoError(r.t, os.WriteFile(r.ledger(), raw, 0o600))
}

// The commands that an agent may call run nothing, and nothing that an agent can write
// decides what other processes run or permit.
func TestResultAllowsNothing(t *testing.T) {
	r := newRunRig(t, `export async function process(inputs, ctx) {
  return await ctx.parallel.all([() => ctx.breakpoint({question:'Ship it?', options:['yes','no']}), () => ctx.sleepUntil('2100-01-01T00:00:00Z'), () => ctx.task(shell, {q:'touch executed'})]); }`)
	first := r.step()
	require.Len(t, first.Held, 1)
	question := first.Held[0].Effect
	_, shell, _ := strings.Cut(first.Queued[0], "/")

	for _, flag := range []string{"--babysitter", "--run"} {
		out, err := r.heartbeat("result", "--inbox", r.inbox, shell, "--text", "x", flag, "touch hacked")
		require.Error(t, err)
		assert.Contains(t, out, "unknown flag: "+flag)
	}
	result := func(effect, value string) (string, error) {
		path := filepath.Join(r.dir, "v.json")
		require.NoError(t, os.WriteFile(path, []byte(value), 0o600))
		return r.heartbeat("result", "--inbox", r.inbox, effect, "--value-file", path)
	}
	out, err := result(question, `{"approved":true}`)
	require.Error(t, err)
	assert.Contains(t, out, "it is a question to a person")
	var list struct {
		Tasks []struct{ EffectID, Kind string }
	}
	require.NoError(t, json.Unmarshal([]byte(r.babysit("task:list", r.run, "--json")), &list))
	for _, task := range list.Tasks {
		if task.Kind == "sleep" {
			out, err = result(task.EffectID, `1`)
			require.Error(t, err)
			assert.Contains(t, out, "which ends by itself")
		}
	}

	r.edit(func(l map[string]any) {
		o := l["options"].(map[string]any)
		o["command"], o["breakpoints"], o["execute"] = []string{"touch", "hacked"}, "ask", []string{"shell"}
	})
	out, err = result(question, `{"approved":true}`)
	require.NoError(t, err, "the ledger says ask: %s", out)
	again := r.step()
	assert.Empty(t, again.Posted)
	require.Len(t, again.Refused, 1, "and the step does not")
	assert.Contains(t, again.Refused[0], "it is a question to a person")

	r.edit(func(l map[string]any) {
		o := l["options"].(map[string]any)
		o["command"], o["execute"] = []string{"touch", "hacked"}, []string{"shell"}
	})
	out, err = r.heartbeat("breakpoint", "approve", question, "--inbox", r.inbox, "--babysitter", r.babysitter, "--option", "perhaps")
	require.Error(t, err)
	assert.Contains(t, out, `there is no option "perhaps": there are yes, no`)
	out, err = r.heartbeat("breakpoint", "reject", question, "--inbox", r.inbox, "--babysitter", r.babysitter)
	require.NoError(t, err, out)
	assert.NoFileExists(t, filepath.Join(r.dir, "hacked"))
	assert.NoFileExists(t, filepath.Join(r.dir, "executed"))
	raw, err := os.ReadFile(r.ledger())
	require.NoError(t, err)
	assert.NotContains(t, string(raw), r.babysitter)
}

// If the agent may ask its person, the answer to a breakpoint has to have the right form,
// and an option that exists.
func TestAnswerHasAForm(t *testing.T) {
	r := newRunRig(t, `export async function process(inputs, ctx) { return await ctx.breakpoint({question:'Ship it?', options:['yes','no']}); }`)
	queued := r.step("--breakpoints", "ask").Queued
	require.Len(t, queued, 1)
	path := filepath.Join(r.dir, "v.json")
	for value, says := range map[string]string{
		`true`:                              "that is an object such as",
		`{"approved":"yes"}`:                "that is an object such as",
		`{"approved":true,"response":1}`:    "that is an object such as",
		`{"approved":true,"option":"both"}`: "there are yes, no",
	} {
		require.NoError(t, os.WriteFile(path, []byte(value), 0o600))
		out, err := r.heartbeat("result", "--inbox", r.inbox, queued[0], "--value-file", path)
		require.Error(t, err)
		assert.Contains(t, out, says)
	}
	out, err := r.heartbeat("result", "--inbox", r.inbox, queued[0], "--error", "no")
	require.Error(t, err)
	assert.Contains(t, out, `a refusal is {"approved": false}`)
	require.NoError(t, os.WriteFile(path, []byte(`{"approved":true,"option":"yes"}`), 0o600))
	out, err = r.heartbeat("result", "--inbox", r.inbox, queued[0], "--value-file", path)
	require.NoError(t, err, out)
	assert.Len(t, r.step("--breakpoints", "ask").Posted, 1)
	assert.Equal(t, `{"approved":true,"option":"yes"}`, r.output())
}

// If several results are handed over at once, exactly one counts. What a killed hand-over
// left behind is no result.
func TestOneResult(t *testing.T) {
	r := newRunRig(t, `export async function process(inputs, ctx) { return (await ctx.task(odd, {q:'x'})).length; }`)
	_, effect, _ := strings.Cut(r.step().Queued[0], "/")
	left := filepath.Join(filepath.Dir(r.inbox), ".run-r1.json.result-"+effect)
	require.NoError(t, os.WriteFile(left+".tmp", []byte(`{"effect":`), 0o600))
	r.step()
	assert.FileExists(t, left+".tmp", "somebody may be writing it")
	path := filepath.Join(r.dir, "v.json")
	require.NoError(t, os.WriteFile(path, []byte(`"`+strings.Repeat("x", 1<<20)+`"`), 0o600))
	var taken atomic.Int32
	var all sync.WaitGroup
	for range 5 {
		all.Go(func() {
			if out, err := r.heartbeat("result", "--inbox", r.inbox, effect, "--value-file", path); err == nil {
				taken.Add(1)
			} else {
				assert.Contains(t, out, "handed over already")
			}
		})
	}
	all.Wait()
	assert.Equal(t, int32(1), taken.Load())
	assert.Len(t, r.step().Posted, 1)
	assert.NoFileExists(t, left)
	assert.Equal(t, "1048576", r.output())
}

// A ledger that came with a repository, or is not a regular file, is not trusted, and
// nobody waits for it.
func TestStrangeLedger(t *testing.T) {
	r := newRunRig(t, `export async function process(inputs, ctx) { return await ctx.breakpoint({question:'Ship it?'}); }`)
	r.step()
	raw, err := os.ReadFile(r.ledger())
	require.NoError(t, err)
	for name, put := range map[string]func(path string) error{
		"brought":   func(path string) error { return os.WriteFile(path, raw, 0o600) },
		"a FIFO":    func(path string) error { return unix.Mkfifo(path, 0o600) },
		"huge":      func(path string) error { return sparse(path) },
		"a link":    func(path string) error { return os.Symlink("/dev/zero", path) },
		"no ledger": func(path string) error { return os.WriteFile(path, []byte("{}"), 0o600) },
		"of old": func(path string) error {
			return os.WriteFile(path, []byte(strings.Replace(string(raw), `"lock"`, `"x"`, 1)), 0o600)
		},
		"not a file": func(path string) error { return os.Mkdir(path, 0o700) },
	} {
		t.Run(name, func(t *testing.T) {
			other := filepath.Join(t.TempDir(), "inbox.jsonl")
			require.NoError(t, put(filepath.Join(filepath.Dir(other), ".run-r1.json")))
			for _, args := range [][]string{{"run", "status"}, {"breakpoint", "list"}, {"status"}} {
				out, err := r.heartbeat(append(args, "--inbox", other)...)
				require.NoError(t, err, out)
				assert.NotContains(t, out, "Ship it?")
			}
			out, err := r.heartbeat("breakpoint", "approve", "01M7XNH40T944T6T9N87JFKQKG", "--inbox", other)
			require.Error(t, err)
			assert.Contains(t, out, "none of the runs of this inbox has it")
		})
	}

	// One that was made here names a run elsewhere than babysitter's command looks.
	require.NoError(t, os.Rename(filepath.Join(r.dir, ".a5c"), filepath.Join(r.dir, "elsewhere")))
	r.run = filepath.Join(r.dir, "elsewhere", "runs", "r1")
	held := r.step().Held
	require.Len(t, held, 1)
	out, err := r.heartbeat("breakpoint", "approve", held[0].Effect, "--inbox", r.inbox, "--babysitter", r.babysitter)
	require.Error(t, err)
	assert.Contains(t, out, "name it with --run ")
	out, err = r.heartbeat("breakpoint", "approve", held[0].Effect, "--inbox", r.inbox, "--babysitter", r.babysitter, "--run", r.run)
	require.NoError(t, err, out)
}

// sparse makes a file of 8 TB that takes no room, or as much as there may be.
func sparse(path string) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	for size := int64(8 << 40); f.Truncate(size) != nil; size /= 2 {
		continue
	}
	return f.Close()
}

// A file in a run's directory that cannot be read is reported, and nobody waits for it.
func TestRunOfDevices(t *testing.T) {
	for _, name := range []string{"run.json", "run.lock", "journal/000001.01M7XNH40T944T6T9N87JFKQKG.json", ".heartbeat-inbox"} {
		for kind, put := range map[string]func(path string) error{"a FIFO": func(path string) error { return unix.Mkfifo(path, 0o600) }, "huge": sparse} {
			t.Run(name+" is "+kind, func(t *testing.T) {
				r := newRunRig(t, `export async function process(inputs, ctx) { return await ctx.task(agent, {q:'a'}); }`)
				path := filepath.Join(r.run, name)
				if strings.HasPrefix(name, "journal/") {
					all, err := filepath.Glob(filepath.Join(r.run, "journal", "*.json"))
					require.NoError(t, err)
					path = all[0]
				}
				require.NoError(t, os.RemoveAll(path))
				require.NoError(t, put(path))
				out, err := r.heartbeat("orchestrate", "--inbox", r.inbox, "--run", r.run, "--once", "--babysitter", r.babysitter)
				require.Error(t, err, out)
				r.drive()
				assert.Len(t, r.texts, 1, "the stop is approved")
				assert.NotEmpty(t, r.said)
			})
		}
	}
}
