package client

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/testing/babysitter"
	"heartbeat/internal/testing/model"
)

var (
	handsOver = regexp.MustCompile(`(?m)^    (\S*heartbeat\S* result .* --(?:value|text)-file (\S+))$`)
	promises  = regexp.MustCompile(`<promise>[^<]*</promise>`)
)

// worker is a model that does what the entries of a run ask for: it returns results with
// the client's own tool, and names the proof at the end.
func worker(r model.Request) model.Reply {
	text := r.UserText
	if len(r.ToolResults) > 0 {
		return model.Text("handed over: " + strings.Join(r.ToolResults, " "))
	}
	if promise := promises.FindString(text); promise != "" {
		return model.Text("It is done. " + promise)
	}
	m := handsOver.FindStringSubmatch(text)
	if m == nil || strings.Contains(text, "last message of this turn is the result") {
		return model.Text("the answer in words")
	}
	return model.Tool("Bash", map[string]any{
		"command": "printf '{\"ok\":true}' > " + m[2] + " && " + m[1], "description": "hand the result over",
	})
}

// runRig is a run of the real babysitter, and the real client that works on it.
type runRig struct {
	*Workspace
	t                    *testing.T
	babysitter, stop     string
	run, inbox, settings string
	options              Options
}

// tasks are what the processes of these tests ask for.
const tasks = `
const agent = defineTask('agent', (a) => ({kind:'agent', title:'agent '+a.q, agent:{name:'helper', prompt:{task:a.q}, ...(a.schema?{outputSchema:a.schema}:{})}}));
const shell = defineTask('shell', (a) => ({kind:'shell', title:'shell '+a.q, shell:{command:a.q}}));
const odd = defineTask('odd', (a) => ({kind:'my-own-kind', title:'odd '+a.q, anything:[1,2]}));
`

// newRunRig makes a run of a process, and wires the hook with it.
func newRunRig(t *testing.T, model model.Script, process string, flags ...string) *runRig {
	t.Helper()
	babysitter, sdk, ok := babysitter.Find()
	if !ok {
		t.Skip("the babysitter CLI is not installed, and HEARTBEAT_BABYSITTER does not name it")
	}
	r := &runRig{t: t, babysitter: babysitter}
	client := Find(t)
	var err error
	r.stop, err = buildOnce()
	require.NoError(t, err)
	r.Workspace = workspace(t, client, model)
	t.Setenv("XDG_STATE_HOME", filepath.Join(r.Home, ".local", "state")) // where the client's hooks have it
	code := "import { defineTask } from " + asJSON(sdk) + ";\n" + tasks + process
	require.NoError(t, os.WriteFile(filepath.Join(r.Project, "p.mjs"), []byte(code), 0o600))
	r.run = filepath.Join(r.Project, ".a5c", "runs", "r1")
	r.babysit("run:create", "--harness", "custom", "--process-id", "p", "--entry", "p.mjs#process", "--run-id", "r1", "--json")
	r.inbox = filepath.Join(t.TempDir(), "inbox.jsonl")
	r.settings = filepath.Join(filepath.Dir(r.inbox), "wired.json")
	r.verb("install", append([]string{"--settings", r.settings, "--run", r.run, "--babysitter", r.babysitter, "--on-orphan", "retry"}, flags...)...)
	r.options = Options{Settings: r.settings, Args: []string{"--allowedTools=Bash"}}
	return r
}

func (r *runRig) babysit(args ...string) string {
	r.t.Helper()
	cmd := exec.Command(r.babysitter, args...)
	cmd.Dir, cmd.Env = r.Project, r.environ(nil)
	out, err := cmd.Output()
	require.NoError(r.t, err, "%s", out)
	return string(out)
}

func (r *runRig) verb(name string, args ...string) string {
	r.t.Helper()
	out, err := exec.Command(besideHook(r.stop), append([]string{name, "--inbox", r.inbox}, args...)...).CombinedOutput()
	require.NoError(r.t, err, "%s", out)
	return string(out)
}

// session has the client work until the hook approves its stop.
func (r *runRig) session(ctx context.Context) string {
	r.t.Helper()
	result, err := r.Print("begin", r.options).Wait(ctx)
	require.NoError(r.t, err)
	require.Zero(r.t, result.ExitCode, "%s\n%s", result.Stdout, result.Stderr)
	return result.Stdout
}

// completed checks that the run is, that its proof was named, and what it returned.
func (r *runRig) completed(said, output string) {
	r.t.Helper()
	var status struct{ State, CompletionProof string }
	require.NoError(r.t, json.Unmarshal([]byte(r.babysit("run:status", r.run, "--json")), &status))
	assert.Equal(r.t, "completed", status.State)
	assert.Contains(r.t, said, "<promise>"+status.CompletionProof+"</promise>")
	got, err := os.ReadFile(filepath.Join(r.run, "state", "output.json"))
	require.NoError(r.t, err)
	assert.JSONEq(r.t, output, string(got))
}

// The real client completes a run of several kinds of effects of the real
// babysitter, although it is killed in the middle.
func TestHeartbeatBabysitterRun(t *testing.T) {
	hung, hang := make(chan struct{}), sync.Once{}
	r := newRunRig(t, func(r model.Request) model.Reply {
		reply := worker(r)
		if strings.Contains(r.UserText, "agent check") {
			hang.Do(func() { reply = model.Hang(); close(hung) })
		}
		return reply
	}, `export async function process(inputs, ctx) {
  const words = await ctx.task(agent, {q:'say it'});
  const all = await ctx.parallel.all([() => ctx.task(shell,{q:'true'}), () => ctx.task(agent,{q:'check', schema:{type:'object', required:['ok']}}), () => ctx.task(odd,{q:'x'})]);
  return {words, all, last: await ctx.task(agent, {q:'and say it again'})};
}`)
	ctx := minutes(t)
	killed := r.Print("begin", r.options)
	select {
	case <-hung:
	case <-ctx.Done():
		require.FailNow(t, "the run did not come to the second agent")
	}
	killed.Kill()
	r.completed(r.session(ctx), `{"words":"the answer in words","all":["{\"ok\":true}",{"ok":true},{"ok":true}],"last":"the answer in words"}`)
}

// At a breakpoint the stop is approved. When it was answered from elsewhere, the next
// session continues. Until then a person's entry comes first.
func TestHeartbeatBabysitterBreakpoint(t *testing.T) {
	for answer, approved := range map[string]string{"approve": "true", "reject": "false"} {
		t.Run(answer, func(t *testing.T) {
			r := newRunRig(t, worker, `export async function process(inputs, ctx) {
  const bp = await ctx.breakpoint({question:'Ship it?'});
  return {approved: bp.approved, then: await ctx.task(odd, {q:'x'})};
}`)
			ctx := minutes(t)
			assert.NotContains(t, r.session(ctx), "promise")
			effect, _, _ := strings.Cut(r.verb("breakpoint", "list"), "\t")
			r.verb("send", "a question of a person")
			r.verb("breakpoint", answer, effect, "--run", r.run, "--babysitter", r.babysitter)
			r.completed(r.session(ctx), `{"approved":`+approved+`,"then":{"ok":true}}`)
			assert.Contains(t, r.verb("results"), "the answer in words", "the person's")
		})
	}
}

// A task that the model fails is caught by the process; a process that throws is
// shown to the model, and tried again.
func TestHeartbeatBabysitterTrouble(t *testing.T) {
	var mended string
	r := newRunRig(t, func(r model.Request) model.Reply {
		m := regexp.MustCompile(`(?m)^    (\S*heartbeat\S* result .* --error '[^']*')$`).FindStringSubmatch(r.UserText)
		switch {
		case len(r.ToolResults) > 0:
		case strings.Contains(r.UserText, "it is broken"):
			return model.Tool("Bash", map[string]any{"command": "touch " + mended, "description": "mend it"})
		case strings.Contains(r.UserText, "odd fails") && m != nil:
			return model.Tool("Bash", map[string]any{"command": m[1], "description": "say that it failed"})
		}
		return worker(r)
	}, `import { existsSync } from 'node:fs';
export async function process(inputs, ctx) {
  let failed; try { await ctx.task(odd, {q:'fails'}); } catch (e) { if (/Pending|Requested/.test(e.name)) throw e; failed = e.name; }
  if (!existsSync('mended')) throw new Error('it is broken');
  return failed;
}`)
	mended = filepath.Join(r.Project, "mended")
	r.completed(r.session(minutes(t)), `"TaskError"`)
}
