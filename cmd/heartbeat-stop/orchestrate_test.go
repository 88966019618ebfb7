package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/agent"
)

// runRig is a babysitter run of the real CLI, driven by way of an inbox of its own.
type runRig struct {
	t                *testing.T
	dir, inbox, run  string
	babysitter, hook string
	texts            []string // that the agent was given
}

// newRunRig makes a run of a process, which is JavaScript. The test is left out
// where there is no CLI.
func newRunRig(t *testing.T, process string) *runRig {
	t.Helper()
	babysitter := os.Getenv("HEARTBEAT_BABYSITTER")
	if babysitter == "" {
		babysitter, _ = exec.LookPath("babysitter")
	}
	if babysitter == "" {
		t.Skip("the babysitter CLI is not installed, and HEARTBEAT_BABYSITTER does not name it")
	}
	hook, err := exec.LookPath("heartbeat-stop")
	require.NoError(t, err)
	r := &runRig{t: t, dir: t.TempDir(), babysitter: babysitter, hook: hook}
	r.inbox, r.run = filepath.Join(r.dir, "queue", "inbox.jsonl"), filepath.Join(r.dir, ".a5c", "runs", "r1")
	require.NoError(t, os.Mkdir(filepath.Dir(r.inbox), 0o700))
	sdk, err := filepath.EvalSymlinks(babysitter)
	require.NoError(t, err)
	for filepath.Base(sdk) != "babysitter-sdk" {
		sdk = filepath.Dir(sdk)
		require.NotEqual(t, "/", sdk, "where is the SDK?")
	}
	code := "import { defineTask } from " + quoteJS(filepath.Join(sdk, "dist", "index.js")) + ";\n" + preludeJS + process
	require.NoError(t, os.WriteFile(filepath.Join(r.dir, "p.mjs"), []byte(code), 0o600))
	r.babysit("run:create", "--harness", "custom", "--process-id", "p", "--entry", "p.mjs#process", "--run-id", "r1", "--json")
	return r
}

// preludeJS are tasks that processes of the tests ask for.
const preludeJS = `
const agent = defineTask('agent', (a) => ({kind:'agent', title:'agent '+a.q, agent:{name:'helper', prompt:{task:a.q}, ...(a.schema?{outputSchema:a.schema}:{})}}));
const node = defineTask('node', (a) => ({kind:'node', title:'node '+a.q, node:{entry:'./x.js', args:[a.q]}}));
const shell = defineTask('shell', (a) => ({kind:'shell', title:'shell '+a.q, shell:{command:a.q}}));
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

// stop runs the command.
func (r *runRig) stop(args ...string) (string, error) {
	cmd := exec.Command(r.hook, args...)
	cmd.Dir = r.dir
	out, err := cmd.CombinedOutput()
	return string(out), err
}

var (
	handover = regexp.MustCompile(`(?m)^    (\S*heartbeat-stop result .* --(?:value|text)-file (\S+))$`)
	promised = regexp.MustCompile(`<promise>[^<]*</promise>`)
)

// obey does what a text asks for, as a model would: it hands a result over where
// the text says how, and makes it from the task's own words.
func (r *runRig) obey(text string) string {
	r.texts = append(r.texts, text)
	if promise := promised.FindString(text); promise != "" {
		return "All done. " + promise
	}
	if m := handover.FindStringSubmatch(text); m != nil && !strings.Contains(text, "last message of this turn is the result") {
		require.NoError(r.t, os.WriteFile(m[2], []byte(`{"ok":true}`), 0o600))
		out, err := exec.Command("sh", "-c", m[1]).CombinedOutput()
		require.NoError(r.t, err, "%s", out)
	}
	return fmt.Sprintf("done %d", len(r.texts))
}

// drive has a session work until the hook approves its stop.
func (r *runRig) drive(flags ...string) {
	r.t.Helper()
	ctx, stop := context.WithTimeout(context.Background(), 2*time.Minute)
	defer stop()
	var said []string
	a := &agent.Agent{
		Hook:   append([]string{r.hook, "--inbox", r.inbox, "--run", r.run, "--babysitter", r.babysitter}, flags...),
		Env:    append(os.Environ(), "CLAUDE_PID="),
		Answer: r.obey, Stderr: func(line string) { said = append(said, line) },
		Transcript: filepath.Join(r.t.TempDir(), "transcript.jsonl"),
	}
	require.NoError(r.t, a.Run(ctx, "begin"), "%q", said)
	r.t.Log(strings.Join(said, "\n"))
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

// A run of several kinds of effects is completed by the session, and its proof
// named.
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
	out, err := r.stop("orchestrate", "--inbox", r.inbox, "--run", r.run, "--once")
	require.NoError(t, err, out)
	assert.Contains(t, out, "its proof was given")
}
