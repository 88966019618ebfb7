package run_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/orchestrate/run"
)

// kinds are tasks of every kind, as JavaScript.
var kinds = map[string]string{
	"node":   `{kind:"node",title:"Run it",node:{entry:"./x.js",args:["a"]},labels:[" b ","a","b",""]}`,
	"shell":  `{kind:"shell",shell:{command:"true"}}`,
	"agent":  `{kind:"agent",title:"Ask é 😀 \" \\ \u2028",agent:{name:"n",prompt:{task:"do"}},labels:["x"]}`,
	"skill":  `{kind:"skill",skill:{name:"s"}}`,
	"custom": `{kind:"of-my-own",title:"own",x:{y:[1,null]}}`,
}

// process writes a process of random steps. An error in a step is caught, or ends the run.
func process(rng *rand.Rand, sdk string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "import { defineTask } from %q;\n", sdk)
	for _, kind := range names(kinds) {
		fmt.Fprintf(&b, "const %s = defineTask(%q, () => (%s));\n", kind, kind, kinds[kind])
	}
	b.WriteString("const caught = async (f) => { try { return await f(); } catch (e) {\n" +
		"  if (e.isIntrinsic || /Requested|Pending/.test(e.name)) throw e; } };\n" +
		"export async function process(inputs, ctx) {\n")
	for range 2 + rng.IntN(3) {
		step := single(rng)
		if rng.IntN(3) == 0 {
			step = "ctx.parallel.all([() => " + step + ", () => " + single(rng) + ", () => " + single(rng) + "])"
		}
		if rng.IntN(4) > 0 {
			step = "caught(() => " + step + ")"
		}
		fmt.Fprintf(&b, "  await %s;\n", step)
	}
	ends := []string{"return {done:true};", "return;", "throw new RangeError('it is over');", "throw {odd:1};", "throw 'a text';"}
	b.WriteString("  " + ends[rng.IntN(len(ends))] + "\n}\n")
	return b.String()
}

func names(m map[string]string) []string {
	var all []string
	for name := range m {
		all = append(all, name)
	}
	slices.Sort(all)
	return all
}

func single(rng *rand.Rand) string {
	switch n := rng.IntN(9); {
	case n < 5:
		inputs := `{n:1}`
		if rng.IntN(6) == 0 {
			inputs = `{big:"x".repeat(1200000)}`
		}
		return "ctx.task(" + names(kinds)[n] + ", " + inputs + ")"
	case n < 7:
		return `ctx.breakpoint({question:"Go on?"}, {label:"gate"})`
	case n < 8:
		return `ctx.sleepUntil("2100-01-01T00:00:00.000Z")`
	}
	return `ctx.orchestratorTask({prompt:"do it"})`
}

// The real command runs processes of random steps, and its state is compared after each
// call.
func TestRandomRuns(t *testing.T) {
	findCommand(t)
	for seed := range uint64(2) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			c, rng := findCommand(t), rand.New(rand.NewPCG(seed, 1))
			r := c.create(t, process(rng, c.sdk(t)))
			c.agree(t, r)
			for range 12 {
				var step struct{ Status run.Status }
				c.run(t, &step, "", "run:iterate", r.Dir())
				c.agree(t, r)
				s := state(t, r)
				require.Equal(t, step.Status, s.Status)
				c.checkFailure(t, r, s)
				c.checkTasks(t, r)
				if s.Status != run.Waiting {
					break
				}
				c.post(t, rng, r, s)
			}
			c.twist(t, rng, r)
		})
	}
}

func (c command) create(t testing.TB, text string) *run.Run {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(c.work, "process.mjs"), []byte(text), 0o600))
	t.Log(text)
	var made struct{ RunDir string }
	require.True(t, c.run(t, &made, "", "run:create", "--process-id", "p 1", "--entry", "process.mjs#process", "--run-id", "r1", "--prompt", "Hi"))
	return open(t, made.RunDir)
}

// post answers one or two of the effects that are pending.
func (c command) post(t testing.TB, rng *rand.Rand, r *run.Run, s run.State) {
	t.Helper()
	rng.Shuffle(len(s.Pending), func(i, j int) { s.Pending[i], s.Pending[j] = s.Pending[j], s.Pending[i] })
	for _, p := range s.Pending[:min(len(s.Pending), 1+rng.IntN(2))] {
		if rng.IntN(3) == 0 {
			c.run(t, nil, `{"name":"TestError","message":"no"}`, "task:post", r.Dir(), p.ID, "--status", "error", "--error", "-")
		} else {
			c.run(t, nil, `{"approved":true}`, "task:post", r.Dir(), p.ID, "--status", "ok", "--value", "-")
		}
		c.agree(t, r)
	}
}

func (c command) checkFailure(t testing.TB, r *run.Run, s run.State) {
	t.Helper()
	var last struct {
		Events []struct {
			Seq  int
			Data struct {
				Error struct{ Name, Message, Stack string }
			}
		}
	}
	require.True(t, c.run(t, &last, "", "run:events", r.Dir(), "--filter-type", "RUN_FAILED", "--reverse", "--limit", "1"))
	if len(last.Events) == 0 {
		require.Nil(t, s.Failure)
		return
	}
	require.NotNil(t, s.Failure)
	e, f := last.Events[0], *s.Failure
	assert.Equal(t, []any{e.Seq, e.Data.Error.Name, e.Data.Error.Message, e.Data.Error.Stack}, []any{f.Seq, f.Name, f.Message, f.Stack})
}

func (c command) checkTasks(t testing.TB, r *run.Run) {
	t.Helper()
	var list struct{ Tasks []listed }
	require.True(t, c.run(t, &list, "", "task:list", r.Dir()))
	for _, of := range list.Tasks {
		task, err := r.Task(of.EffectID)
		require.NoError(t, err)
		assert.Equal(t, []any{of.Kind, of.StepID, of.InputsRef != ""}, []any{task.Kind, task.StepID, task.InputsPath != ""})
		if task.InputsPath != "" {
			assert.True(t, fileExists(task.InputsPath), task.InputsPath)
		}
	}
}

// twist does something unusual to a run.
func (c command) twist(t testing.TB, rng *rand.Rand, r *run.Run) {
	t.Helper()
	c.agree(t, r)
	for _, what := range rng.Perm(3) {
		switch what {
		case 0:
			c.create(t, "export async function process() { return 1; }")
		case 1:
			require.True(t, c.run(t, nil, "", "run:repair-journal", r.Dir()))
		case 2:
			c.run(t, nil, "", "run:iterate", r.Dir())
		}
		require.True(t, c.agree(t, r))
	}
}
