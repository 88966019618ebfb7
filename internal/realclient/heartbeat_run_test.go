package realclient

import (
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

	"heartbeat/internal/standin"
)

// babysitterVariable names the babysitter command to test with.
const babysitterVariable = "HEARTBEAT_BABYSITTER"

var (
	handsOver = regexp.MustCompile(`(?m)^    (\S*heartbeat-stop\S* result .* --(?:value|text)-file (\S+))$`)
	promises  = regexp.MustCompile(`<promise>[^<]*</promise>`)
)

// worker is a model that does what the entries of a run ask for: it hands results
// over by the client's own tool, and names the proof at the end.
func worker(r standin.Request) standin.Reply {
	text := r.UserText
	if len(r.ToolResults) > 0 {
		return standin.Text("handed over: " + strings.Join(r.ToolResults, " "))
	}
	if promise := promises.FindString(text); promise != "" {
		return standin.Text("It is done. " + promise)
	}
	m := handsOver.FindStringSubmatch(text)
	if m == nil || strings.Contains(text, "last message of this turn is the result") {
		return standin.Text("the answer in words")
	}
	return standin.Tool("Bash", map[string]any{
		"command": "printf '{\"ok\":true}' > " + m[2] + " && " + m[1], "description": "hand the result over",
	})
}

// The real client completes a run of several kinds of effects of the real
// babysitter, although it is killed in the middle.
func TestHeartbeatBabysitterRun(t *testing.T) {
	babysitter := os.Getenv(babysitterVariable)
	if babysitter == "" {
		t.Skip(babysitterVariable + " does not name the babysitter command")
	}
	client := Find(t)
	stop, err := buildOnce()
	require.NoError(t, err)
	hung, hang := make(chan struct{}), sync.Once{}
	w := workspace(t, client, func(r standin.Request) standin.Reply {
		reply := worker(r)
		if strings.Contains(r.UserText, "agent check") {
			hang.Do(func() { reply = standin.Hang(); close(hung) })
		}
		return reply
	})
	sdk, err := filepath.EvalSymlinks(babysitter)
	require.NoError(t, err)
	for filepath.Base(sdk) != "babysitter-sdk" {
		require.NotEqual(t, "/", sdk)
		sdk = filepath.Dir(sdk)
	}
	process := `import { defineTask } from ` + asJSON(filepath.Join(sdk, "dist", "index.js")) + `;
const agent = defineTask('agent', (a) => ({kind:'agent', title:'agent '+a.q, agent:{name:'helper', prompt:{task:a.q}, ...(a.schema?{outputSchema:a.schema}:{})}}));
const shell = defineTask('shell', (a) => ({kind:'shell', title:'shell '+a.q, shell:{command:a.q}}));
export async function process(inputs, ctx) {
  const words = await ctx.task(agent, {q:'say it'});
  const all = await ctx.parallel.all([() => ctx.task(shell,{q:'true'}), () => ctx.task(agent,{q:'check', schema:{type:'object', required:['ok']}})]);
  return {words, all};
}`
	require.NoError(t, os.WriteFile(filepath.Join(w.Project, "p.mjs"), []byte(process), 0o600))
	run := filepath.Join(w.Project, ".a5c", "runs", "r1")
	babysit := func(args ...string) string {
		cmd := exec.Command(babysitter, args...)
		cmd.Dir, cmd.Env = w.Project, w.environ(nil)
		out, err := cmd.Output()
		require.NoError(t, err, "%s", out)
		return string(out)
	}
	babysit("run:create", "--harness", "custom", "--process-id", "p", "--entry", "p.mjs#process", "--run-id", "r1", "--json")

	queue := filepath.Join(t.TempDir(), "inbox.jsonl")
	settings := filepath.Join(filepath.Dir(queue), "wired.json")
	out, err := exec.Command(stop, "install", "--inbox", queue, "--settings", settings, "--run", run, "--babysitter", babysitter, "--on-orphan", "retry").CombinedOutput()
	require.NoError(t, err, "%s", out)
	ctx := minutes(t)
	options := Options{Settings: settings, Args: []string{"--allowedTools=Bash"}}
	killed := w.Print("begin", options)
	select {
	case <-hung:
	case <-ctx.Done():
		require.FailNow(t, "the run did not come to the second agent")
	}
	killed.Kill()
	result, err := w.Print("begin again", options).Wait(ctx)
	require.NoError(t, err)
	require.Zero(t, result.ExitCode, "%s\n%s", result.Stdout, result.Stderr)

	var status struct{ State, CompletionProof string }
	require.NoError(t, json.Unmarshal([]byte(babysit("run:status", run, "--json")), &status))
	assert.Equal(t, "completed", status.State)
	assert.Contains(t, result.Stdout, "<promise>"+status.CompletionProof+"</promise>")
	output, err := os.ReadFile(filepath.Join(run, "state", "output.json"))
	require.NoError(t, err)
	assert.JSONEq(t, `{"words":"the answer in words","all":["{\"ok\":true}",{"ok":true}]}`, string(output))
}
