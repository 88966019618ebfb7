package orchestrate_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/testing/agent"
	"heartbeat/internal/testing/babysitter"
	"heartbeat/orchestrate"
)

// runRig is a run of the real CLI, driven through an inbox of its own.
type runRig struct {
	t                *testing.T
	dir, inbox, run  string
	babysitter, hook string
	texts            []string                 // that the agent was given
	says             func(text string) string // in place of what it says otherwise, unless empty
	mute             func(text string) bool   // a text that it hands nothing over for
	sessionID        string                   // of the session, "" for one of its own
	iterations       orchestrate.StateFile    // whose count is seen at each text
	seen             []int
	said             string // by the hook of the last drive
}

// newRunRig makes a run of a process, which is JavaScript. The test is skipped if the CLI is
// not installed.
func newRunRig(t *testing.T, process string) *runRig {
	t.Helper()
	r := newProcessRig(t, process)
	r.babysit("run:create", "--harness", "custom", "--process-id", "p", "--entry", "p.mjs#process", "--run-id", "r1", "--json")
	return r
}

// newProcessRig is newRunRig without making the run.
func newProcessRig(t *testing.T, process string) *runRig {
	t.Helper()
	babysitter, sdk, ok := babysitter.Find()
	if !ok {
		t.Skip("the babysitter CLI is not installed, and HEARTBEAT_BABYSITTER does not name it")
	}
	hook, err := exec.LookPath("heartbeat-stop")
	require.NoError(t, err)
	r := &runRig{t: t, dir: t.TempDir(), babysitter: babysitter, hook: hook}
	r.inbox, r.run = filepath.Join(r.dir, "queue", "inbox.jsonl"), filepath.Join(r.dir, ".a5c", "runs", "r1")
	require.NoError(t, os.Mkdir(filepath.Dir(r.inbox), 0o700))
	code := "import { defineTask } from " + quoteJS(sdk) + ";\n" + preludeJS + process
	require.NoError(t, os.WriteFile(filepath.Join(r.dir, "p.mjs"), []byte(code), 0o600))
	return r
}

// preludeJS defines the tasks that the processes of the tests ask for.
const preludeJS = `
const agent = defineTask('agent', (a) => ({kind:'agent', title:'agent '+a.q, agent:{name:'helper', prompt:{task:a.q}, ...(a.schema?{outputSchema:a.schema}:{})}}));
const node = defineTask('node', (a) => ({kind:'node', title:'node '+a.q, node:{entry:'./x.js', args:[a.q]}}));
const shell = defineTask('shell', (a) => ({kind:'shell', title:'shell '+a.q, shell:{command:a.q, ...a.more}}));
const odd = defineTask('odd', (a) => ({kind:'my-own-kind', title:'odd '+a.q, anything:[1,2]}));
`

func quoteJS(s string) string {
	text, _ := json.Marshal(s) // a string always can be
	return string(text)
}

func (r *runRig) babysit(args ...string) string {
	r.t.Helper()
	cmd := exec.Command(r.babysitter, args...)
	cmd.Dir = r.dir
	out, err := cmd.CombinedOutput()
	require.NoError(r.t, err, "%s", out)
	return string(out)
}

// heartbeat runs the command that people type.
func (r *runRig) heartbeat(args ...string) (string, error) {
	cmd := exec.Command("heartbeat", args...)
	cmd.Dir = r.dir
	out, err := cmd.CombinedOutput()
	return string(out), err
}

var (
	handover = regexp.MustCompile(`(?m)^    (\S*heartbeat result .* --(?:value|text)-file (\S+))$`)
	promised = regexp.MustCompile(`<promise>[^<]*</promise>`)
)

// obey does what a text asks for, as a model would: if the text says how, it hands a result
// over.
func (r *runRig) obey(text string) string {
	r.texts = append(r.texts, text)
	if state, err := r.iterations.Read(); err == nil {
		r.seen = append(r.seen, state.Iteration)
	}
	if promise := promised.FindString(text); promise != "" {
		return "All done. " + promise
	}
	if r.says != nil {
		if said := r.says(text); said != "" {
			return said
		}
	}
	if m := handover.FindStringSubmatch(text); m != nil && (r.mute == nil || !r.mute(text)) && !strings.Contains(text, "last message of this turn is the result") {
		result := `{"ok":true}`
		if strings.Contains(text, `{"approved": true`) {
			result = `{"approved":true}`
		}
		require.NoError(r.t, os.WriteFile(m[2], []byte(result), 0o600))
		out, err := exec.Command("sh", "-c", m[1]).CombinedOutput()
		require.NoError(r.t, err, "%s", out)
	}
	return fmt.Sprintf("done %d", len(r.texts))
}

// obeyKilled is obey with a hand-over that may be killed.
func (r *runRig) obeyKilled(text, mark string) string {
	r.texts = append(r.texts, text)
	if promise := promised.FindString(text); promise != "" {
		return "All done. " + promise
	}
	if m := handover.FindStringSubmatch(text); m != nil && !strings.Contains(text, "last message of this turn is the result") {
		_ = os.WriteFile(m[2], []byte(`{"ok":true}`), 0o600) // the next attempt does it again
		cmd := exec.Command("sh", "-c", m[1])
		cmd.Env = append(os.Environ(), mark)
		_ = cmd.Run() // likewise
	}
	return fmt.Sprintf("done %d", len(r.texts))
}

// drive runs a session until the hook approves its stop.
func (r *runRig) drive(flags ...string) {
	r.t.Helper()
	ctx, stop := context.WithTimeout(context.Background(), 10*time.Minute)
	defer stop()
	var said []string
	a := &agent.Agent{
		Hook: append([]string{r.hook, "--inbox", r.inbox, "--run", r.run, "--babysitter", r.babysitter}, flags...),
		Env:  append(os.Environ(), "CLAUDE_PID="), SessionID: r.sessionID,
		Answer: r.obey, Stderr: func(line string) { said = append(said, line) },
		Transcript: filepath.Join(r.t.TempDir(), "transcript.jsonl"),
	}
	require.NoError(r.t, a.Run(ctx, "begin"), "%q", said)
	r.said = strings.Join(said, "\n")
	r.t.Log(r.said)
}

// state is what the CLI says of the run.
func (r *runRig) state() string {
	r.t.Helper()
	var s struct{ State string }
	require.NoError(r.t, json.Unmarshal([]byte(r.babysit("run:status", r.run, "--json")), &s))
	return s.State
}

// output is what the process returned.
func (r *runRig) output() string {
	r.t.Helper()
	text, err := os.ReadFile(filepath.Join(r.run, "state", "output.json"))
	require.NoError(r.t, err)
	return strings.Join(strings.Fields(string(text)), "")
}

// A session completes a run with several kinds of effects, and names its proof.
func TestRunThroughTheHook(t *testing.T) {
	r := newRunRig(t, `export async function process(inputs, ctx) {
  const one = await ctx.task(agent, {q:'one'});
  const all = await ctx.parallel.all([() => ctx.task(node,{q:'a'}), () => ctx.task(shell,{q:'true'}), () => ctx.task(odd,{q:'c'})]);
  const last = await ctx.task(agent, {q:'two', schema:{type:'object', required:['ok'], properties:{ok:{type:'boolean'}}}});
  return {one, all, last};
}`)
	r.drive()
	assert.Equal(t, "completed", r.state())
	assert.Equal(t, `{"one":"done2","all":["{\"ok\":true}","{\"ok\":true}",{"ok":true}],"last":{"ok":true}}`, r.output())
	assert.Len(t, r.texts, 7, "%q", r.texts) // begin, five effects, the end
	out, err := r.heartbeat("orchestrate", "--inbox", r.inbox, "--run", r.run, "--once")
	require.NoError(t, err, out)
	assert.Contains(t, out, "it is done")
}

// A breakpoint holds the run until a person answers it with another command. It is never
// approved automatically, and a rejection is an answer, too.
func TestRunBreakpoints(t *testing.T) {
	const process = `export async function process(inputs, ctx) { return await ctx.breakpoint({question:'Ship it?'}); }`
	for answer, want := range map[string]string{
		"approve": `{"approved":true,"respondedBy":"`,
		"reject":  `{"approved":false,"respondedBy":"`,
	} {
		t.Run(answer, func(t *testing.T) {
			r := newRunRig(t, process)
			r.drive()
			assert.Equal(t, "waiting", r.state())
			assert.Len(t, r.texts, 1, "the stop is approved, and nobody asked")
			out, err := r.heartbeat("breakpoint", "list", "--inbox", r.inbox)
			require.NoError(t, err, out)
			assert.Contains(t, out, "Ship it?")
			effect := strings.Fields(out)[0]
			out, err = r.heartbeat("status", "--inbox", r.inbox)
			require.NoError(t, err, out)
			assert.Regexp(t, `the run r1 waits since \S+ \S+ for a person to answer "Ship it\?": `+"`heartbeat breakpoint approve "+effect+" --inbox "+r.inbox+"` "+`\(or reject\)`, out)
			out, err = r.heartbeat("breakpoint", answer, effect, "--inbox", r.inbox, "--babysitter", r.babysitter, "--response", "gladly")
			require.NoError(t, err, out)
			r.drive()
			assert.Equal(t, "completed", r.state())
			assert.Contains(t, r.output(), want)
			assert.Contains(t, r.output(), `"response":"gladly"}`)
		})
	}
	t.Run("rejected by a flag", func(t *testing.T) {
		r := newRunRig(t, process)
		r.drive("--breakpoints", "reject", "--reject-reason", "not at night")
		assert.Equal(t, "completed", r.state())
		assert.Equal(t, `{"approved":false,"response":"notatnight"}`, r.output())
	})
	t.Run("asked of the agent", func(t *testing.T) {
		r := newRunRig(t, process)
		r.drive("--breakpoints", "ask")
		assert.Equal(t, "completed", r.state())
		assert.Contains(t, r.texts[1], "Ship it?")
	})
}

// The hook waits for a short sleep, and leaves a long one to a later step.
func TestRunSleeps(t *testing.T) {
	r := newRunRig(t, `export async function process(inputs, ctx) { await ctx.sleepUntil(new Date(Date.parse(inputs?.at ?? '2100-01-01')).toISOString()); return 1; }`)
	r.drive()
	assert.Equal(t, "waiting", r.state())
	out, err := r.heartbeat("orchestrate", "--inbox", r.inbox, "--run", r.run, "--once", "--json")
	require.NoError(t, err, out)
	assert.Contains(t, out, `"not_before":"2100-01-01T00:00:00Z"`)

	r = newRunRig(t, `export async function process(inputs, ctx) {
  const at = await ctx.task(agent, {q:'when'});
  await ctx.sleepUntil(new Date(Number(at)).toISOString());
  return (await ctx.task(agent, {q:'after'})).length > 0 && Date.now() >= Number(at); }`)
	at := time.Now().Add(3 * time.Second)
	r.says = func(text string) string {
		if strings.Contains(text, "when") {
			return strconv.FormatInt(at.UnixMilli(), 10)
		}
		return ""
	}
	r.drive()
	assert.Equal(t, "completed", r.state())
	assert.Equal(t, "true", r.output())
}

// The agent is told that the process threw an error, and the process is tried again after
// the agent's answer.
func TestRunFails(t *testing.T) {
	r := newRunRig(t, `import { existsSync } from 'node:fs';
export async function process(inputs, ctx) {
  const one = await ctx.task(agent, {q:'one'});
  if (!existsSync('mended')) throw new Error('it is broken');
  return one; }`)
	r.says = func(text string) string {
		if strings.Contains(text, "it is broken") {
			require.NoError(t, os.WriteFile(filepath.Join(r.dir, "mended"), nil, 0o600))
			return "mended"
		}
		return ""
	}
	r.drive()
	assert.Equal(t, "completed", r.state())
	assert.Len(t, r.texts, 4, "begin, one, the failure, the end: %q", r.texts)

	r = newRunRig(t, `export async function process(inputs, ctx) { throw new Error('for ever'); }`)
	r.drive()
	assert.Equal(t, "failed", r.state())
	assert.Len(t, r.texts, 4, "three tries, each told once")
}

// If the agent hands nothing over for an effect, it is asked again; after the last attempt
// the process gets an error, which it may catch.
func TestRunUnresolved(t *testing.T) {
	r := newRunRig(t, `export async function process(inputs, ctx) {
  try { await ctx.task(odd, {q:'x'}); } catch (e) { if (/Pending|Requested/.test(e.name)) throw e; return {name: e.name, next: await ctx.task(odd, {q:'y'})}; } }`)
	r.mute = func(text string) bool { return strings.Contains(text, "odd x") }
	r.drive("--on-unresolved", "post-error")
	assert.Equal(t, "completed", r.state())
	assert.Equal(t, `{"name":"UnresolvedEffect","next":{"ok":true}}`, r.output())
	assert.Contains(t, r.texts[2], "This is asked again (attempt 2)")
	assert.Len(t, r.texts, 6, "begin, x three times, y, the end")
	out, err := r.heartbeat("dead-letter", "list", "--inbox", r.inbox)
	require.NoError(t, err)
	assert.Contains(t, out, "unresolved")
}

// A result that does not fit the schema of its task is not handed over.
func TestRunResultChecked(t *testing.T) {
	r := newRunRig(t, `export async function process(inputs, ctx) {
  return await ctx.task(agent, {q:'n', schema:{type:'object', required:['n'], properties:{n:{type:'integer'}}}}); }`)
	out, err := r.heartbeat("orchestrate", "--inbox", r.inbox, "--run", r.run, "--once", "--json", "--babysitter", r.babysitter)
	require.NoError(t, err, out)
	var report struct{ Queued []string }
	require.NoError(t, json.Unmarshal([]byte(out), &report))
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"--text", "five"}, "does not match the task's schema"},
		{[]string{"--value-file", "no"}, "read the result"},
		{nil, "a result is one of"},
	} {
		out, err := r.heartbeat(append([]string{"result", "--inbox", r.inbox, report.Queued[0]}, c.args...)...)
		require.Error(t, err)
		assert.Contains(t, out, c.says)
	}
	out, err = r.heartbeat("result", "--inbox", r.inbox, "NO-SUCH-EFFECT", "--text", "x")
	require.Error(t, err)
	assert.Contains(t, out, "none of the runs of this inbox has it")
	require.NoError(t, os.WriteFile(filepath.Join(r.dir, "v.json"), []byte(`{"n":5}`), 0o600))
	out, err = r.heartbeat("result", "--inbox", r.inbox, report.Queued[0], "--value-file", "v.json")
	require.NoError(t, err, out)
	out, err = r.heartbeat("result", "--inbox", r.inbox, report.Queued[0], "--value-file", "v.json")
	require.Error(t, err)
	assert.Contains(t, out, "one was handed over already")
	r.mute = func(string) bool { return true }
	r.drive()
	assert.Equal(t, `{"n":5}`, r.output())
}

// Entries of others keep their place, and two runs share an inbox.
func TestRunsShareAnInbox(t *testing.T) {
	r := newRunRig(t, `export async function process(inputs, ctx) {
  const a = await ctx.task(agent, {q:'a'}); const b = await ctx.task(agent, {q:'b'}); return [a,b].length; }`)
	r.babysit("run:create", "--harness", "custom", "--process-id", "p", "--entry", "p.mjs#process", "--run-id", "r2", "--json")
	for _, text := range []string{"by hand 1", "by hand 2"} {
		out, err := r.heartbeat("send", "--inbox", r.inbox, text)
		require.NoError(t, err, out)
	}
	r.drive("--run", filepath.Join(filepath.Dir(r.run), "r2"))
	assert.Equal(t, []string{"begin", "by hand 1", "by hand 2"}, r.texts[:3])
	assert.Len(t, r.texts, 3+2*3)
	assert.Equal(t, "completed", r.state())
	r.run = filepath.Join(filepath.Dir(r.run), "r2")
	assert.Equal(t, "completed", r.state())
}

// Steps taken side by side give each effect one entry.
func TestStepsSideBySide(t *testing.T) {
	r := newRunRig(t, `export async function process(inputs, ctx) {
  return await ctx.parallel.map([...Array(120).keys()], (n) => ctx.task(agent, {q:'n'+n})); }`)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			out, err := r.heartbeat("orchestrate", "--inbox", r.inbox, "--run", r.run, "--once", "--babysitter", r.babysitter)
			assert.NoError(t, err, out)
		})
	}
	wg.Wait()
	raw, err := os.ReadFile(r.inbox)
	require.NoError(t, err)
	assert.Equal(t, 120, strings.Count(string(raw), "\n"))
}

// Commands may be carried out without the agent.
func TestRunExecutes(t *testing.T) {
	r := newRunRig(t, `export async function process(inputs, ctx) {
  const ok = await ctx.task(shell, {q:'echo "$((40+2))"; echo aside >&2'});
  let failed; try { await ctx.task(shell, {q:'echo no; exit 3'}); } catch (e) { if (/Pending|Requested/.test(e.name)) throw e; failed = [e.message, e.data.exitCode, e.data.stdout]; }
  const js = await ctx.task(node, {q:'it'});
  const left = await ctx.task(shell, {q:'sleep 1000 & echo started'});
  let cut; try { await ctx.task(shell, {q:"head -c 60000000 /dev/zero | tr '\\\\0' x"}); } catch (e) { if (/Pending|Requested/.test(e.name)) throw e; cut = [/cut off/.test(e.message), e.data.exitCode, e.data.cutOff, e.data.stdout.length]; }
  const who = await ctx.task(shell, {q:'echo $WHO', more:{env:{WHO:'Ada'}}});
  const silent = await ctx.task(shell, {q:'echo much', more:{captureOutput:false}});
  return [ok, failed, js, left, cut, who, silent]; }`)
	require.NoError(t, os.WriteFile(filepath.Join(r.dir, "x.js"), []byte(`console.log('node did ' + process.argv[2])`), 0o600))
	r.drive("--execute", "shell,node")
	assert.Equal(t, "completed", r.state())
	assert.Equal(t, `["42\n",["itendedwithstatus3,andnot0",3,"no\n"],"nodedidit\n","started\n",[true,0,true,1048576],"Ada\n",""]`, r.output())
	assert.Len(t, r.texts, 2, "begin, and the end")
}

// The commands of a run outside a project's .a5c/runs run in heartbeat's own directory.
// A step that posts a result looks again, and tells what it found then, each thing once.
func TestStepCountsOnce(t *testing.T) {
	r := newRunRig(t, `export async function process(inputs, ctx) {
  await ctx.parallel.all([() => ctx.task(agent, {q:'a'}), () => ctx.task(shell, {q:'echo b'}), () => ctx.breakpoint({question:'Ship?'})]); }`)
	report := r.step("--execute", "shell")
	assert.Len(t, report.Posted, 1)
	assert.Len(t, report.Queued, 1)
	assert.Zero(t, report.Waits, "it is the one that was queued")
	assert.Len(t, report.Held, 1)
}

func TestRunExecutesElsewhere(t *testing.T) {
	r := newProcessRig(t, `export async function process(inputs, ctx) { return await ctx.task(shell, {q:'pwd'}); }`)
	elsewhere := t.TempDir()
	r.run = filepath.Join(elsewhere, "D", "runs", "r1")
	out, err := r.heartbeat("run", "start", "--inbox", r.inbox, "--entry", filepath.Join(r.dir, "p.mjs"), "--process-id", "p",
		"--run-id", "r1", "--runs-dir", filepath.Dir(r.run), "--execute", "shell", "--babysitter", r.babysitter)
	require.NoError(t, err, out)
	output, err := os.ReadFile(filepath.Join(r.run, "state", "output.json"))
	require.NoError(t, err)
	where, err := filepath.EvalSymlinks(r.dir)
	require.NoError(t, err)
	assert.Equal(t, quoteJS(where+"\n"), strings.TrimSpace(string(output)))
}

// One inbox drives a run, and an inbox drives one run of each id.
func TestRunIsClaimed(t *testing.T) {
	r := newRunRig(t, `export async function process(inputs, ctx) { return await ctx.task(agent, {q:'a'}); }`)
	step := func(inbox string) (string, error) {
		return r.heartbeat("orchestrate", "--inbox", inbox, "--run", r.run, "--once", "--babysitter", r.babysitter)
	}
	out, err := step(r.inbox)
	require.NoError(t, err, out)
	other := filepath.Join(t.TempDir(), "inbox.jsonl")
	out, err = step(other)
	require.Error(t, err)
	assert.Contains(t, out, "another inbox drives it: "+r.inbox)
	assert.NoFileExists(t, other)

	require.NoError(t, os.Rename(filepath.Dir(r.inbox), filepath.Join(r.dir, "gone")))
	out, err = step(other)
	require.NoError(t, err, "the inbox is gone: %s", out)
}

// A damaged journal is reported, left unchanged, and mended on request.
func TestRunIsRepaired(t *testing.T) {
	r := newRunRig(t, `export async function process(inputs, ctx) { return [await ctx.task(agent, {q:'a'}), await ctx.task(agent, {q:'b'})].length; }`)
	r.drive()
	require.Equal(t, "completed", r.state())
	journal := filepath.Join(r.run, "journal")
	names, err := os.ReadDir(journal)
	require.NoError(t, err)
	require.NoError(t, os.Remove(filepath.Join(journal, names[2].Name())))
	step := func(flags ...string) (string, error) {
		return r.heartbeat(append([]string{"orchestrate", "--inbox", r.inbox, "--run", r.run, "--once", "--babysitter", r.babysitter}, flags...)...)
	}
	out, err := step()
	require.Error(t, err)
	assert.Contains(t, out, "`heartbeat orchestrate --run "+r.run+" --repair --once` mends it")
	for _, verb := range []string{"resume", "complete", "accept-code"} {
		out, err = r.heartbeat("run", verb, r.run, "--inbox", r.inbox, "--babysitter", r.babysitter)
		require.Error(t, err)
		assert.Contains(t, out, "--repair --once` mends it")
		assert.NotContains(t, out, "go on with")
	}
	out, err = r.heartbeat("doctor", "--inbox", r.inbox, "--project", r.dir)
	require.Error(t, err)
	assert.Contains(t, out, "orchestrate --inbox "+r.inbox+" --run "+r.run+" --repair")
	out, err = step("--repair")
	require.NoError(t, err, out)
	assert.Contains(t, out, "was repaired")
}
