package orchestrate_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"heartbeat/orchestrate"
	"heartbeat/orchestrate/babysitter"
	"heartbeat/orchestrate/run"
	recovery "heartbeat/recover"
)

const twoTasksJS = `export async function process(inputs, ctx) {
  const one = await ctx.task(agent, {q:inputs.first});
  return {one, two: await ctx.task(agent, {q:'two'})};
}`

// startRun makes the run by the run verb, and binds the stand-in's session.
func (r *runRig) startRun(flags ...string) {
	r.t.Helper()
	require.NoError(r.t, os.WriteFile(filepath.Join(r.dir, "in.json"), []byte(`{"first":"one"}`), 0o600))
	out, err := r.heartbeat(append([]string{"run", "start", "--inbox", r.inbox, "--babysitter", r.babysitter, "--entry", "p.mjs", "--process-id", "p",
		"--inputs", "in.json", "--run-id", "r1", "--prompt", "do both", "--json"}, flags...)...)
	require.NoError(r.t, err, out)
	var made begun
	require.NoError(r.t, json.Unmarshal([]byte(out), &made))
	assert.Len(r.t, made.Queued, 1)
	assert.Contains(r.t, made.Hook, r.run)
	if made.Session != nil {
		assert.Equal(r.t, 1, made.Session.Iteration)
		assert.Equal(r.t, !slices.Contains(flags, "0"), made.Session.MaxIterations > 0, "0 is no limit")
	}
}

// A dry run shows the run, and makes nothing.
func TestRunStartDry(t *testing.T) {
	r := newProcessRig(t, twoTasksJS)
	start := func(flags ...string) (string, error) {
		return r.heartbeat(append([]string{"run", "start", "--inbox", r.inbox, "--babysitter", r.babysitter, "--entry", "p.mjs", "--process-id", "p",
			"--run-id", "r1", "--process-revision", "v2.1", "--request", "req 456", "--json"}, flags...)...)
	}
	out, err := start("--dry-run")
	require.NoError(t, err, out)
	var p babysitter.Created
	require.NoError(t, json.Unmarshal([]byte(out), &p))
	assert.Equal(t, babysitter.Created{
		RunID: "r1", RunDir: r.run, Process: "p", Entry: p.Entry, Request: "req 456", Revision: "v2.1",
	}, p)
	assert.Contains(t, p.Entry, "p.mjs#process")
	assert.NoDirExists(t, filepath.Join(r.dir, ".a5c"))
	assert.NoFileExists(t, r.inbox)

	require.NoError(t, os.WriteFile(filepath.Join(r.dir, "in.json"), []byte(`{"first":"one"}`), 0o600))
	out, err = start("--inputs", "in.json")
	require.NoError(t, err, out)
	made, err := os.ReadFile(filepath.Join(r.run, "run.json"))
	require.NoError(t, err)
	var kept struct{ Request, ProcessRevision string }
	require.NoError(t, json.Unmarshal(made, &kept))
	assert.Equal(t, "req 456", kept.Request)
	assert.Equal(t, "v2.1", kept.ProcessRevision)
	out, err = start("--dry-run")
	require.Error(t, err)
	assert.Contains(t, out, "it is there already")
	out, err = start("--dry-run", "--run-id", "r2", "--request", "--json")
	require.Error(t, err)
	assert.Contains(t, out, "is no name of a request")
}

// standing is what run status prints about the run.
func (r *runRig) standing() string {
	r.t.Helper()
	out, err := r.heartbeat("run", "status", "--inbox", r.inbox)
	require.NoError(r.t, err, out)
	return out
}

// A run is made with its session, driven to its end, and shown. The state file counts the
// iterations, and is gone at the end.
func TestRunStart(t *testing.T) {
	r := newProcessRig(t, twoTasksJS)
	states := filepath.Join(r.dir, "states")
	r.startRun("--session-id", "s1", "--state-dir", states, "--max-iterations", "9")
	assert.Equal(t, "run r1: waiting for 1 agent, 1 entry queued, 1 iteration\n", r.standing())

	file, err := orchestrate.StateFileAt(states, "s1")
	require.NoError(t, err)
	s, err := file.Read()
	require.NoError(t, err)
	assert.Equal(t, orchestrate.State{
		Active: true, Iteration: 1, MaxIterations: 9, RunID: "r1", StartedAt: s.StartedAt, LastIterationAt: s.LastIterationAt, Prompt: "do both",
	}, s)

	out, err := r.heartbeat("run", "start", "--inbox", r.inbox, "--babysitter", r.babysitter, "--entry", "p.mjs", "--process-id", "p",
		"--run-id", "r2", "--session-id", "s1", "--state-dir", states)
	require.Error(t, err)
	assert.Contains(t, out, "bind session s1: the session is bound to another run: run r1, which is not over")
	assert.NoDirExists(t, filepath.Join(r.dir, ".a5c", "runs", "r2"))

	// The session starts with its figures, which babysitter's own command reads as well.
	assert.Equal(t, "heartbeat: this session is bound to run r1, iteration 1/9",
		r.spender("s1", "--state-dir", states).shown)
	read := gjson.Parse(r.babysit("session:state", "--session-id", "s1", "--state-dir", states, "--json"))
	assert.EqualValues(t, 1, read.Get("state.iteration").Int(), read.Raw)
	assert.EqualValues(t, 9, read.Get("state.maxIterations").Int())
	assert.Equal(t, "r1", read.Get("state.runId").String())

	r.sessionID, r.iterations = "s1", file
	r.drive("--state-dir", states)
	assert.Equal(t, "completed", r.state())
	assert.Equal(t, []int{1, 1, 2, 3}, r.seen, "what the state file said at each prompt")
	assert.NoFileExists(t, file.Path())
	assert.Contains(t, r.standing(), "run r1: completed, 3 iterations; it is done")

	out, err = r.heartbeat("run", "resume", "--inbox", r.inbox, "r1")
	require.Error(t, err)
	assert.Contains(t, out, "run r1 is completed and done: there is nothing to resume")
}

// isPerson skips a test that an agent runs.
func isPerson(t *testing.T) {
	if recovery.InSession(os.Getpid(), nil) {
		t.Skip("an agent runs this, and so this is no person")
	}
}

// effect is the id of the one effect that the run waits for.
func (r *runRig) effect() string {
	r.t.Helper()
	opened, err := run.Open(r.run)
	require.NoError(r.t, err)
	st, err := opened.State()
	require.NoError(r.t, err)
	require.Len(r.t, st.Pending, 1)
	return st.Pending[0].ID
}

// A person brings a run to its end from the command line, without an agent and without
// babysitter's command.
func TestRunComplete(t *testing.T) {
	isPerson(t)
	r := newProcessRig(t, twoTasksJS)
	r.startRun()
	complete := func() (string, error) {
		return r.heartbeat("run", "complete", "r1", "--inbox", r.inbox, "--babysitter", r.babysitter)
	}
	for _, value := range []string{"1", "2"} {
		out, err := complete()
		require.Error(t, err)
		assert.Contains(t, out, "the run is not completed: run r1: waiting for 1 agent, 1 entry queued")
		out, err = r.heartbeat("result", r.effect(), "--inbox", r.inbox, "--text", value)
		require.NoError(t, err, out)
	}
	out, err := complete()
	require.NoError(t, err, out)
	assert.Contains(t, out, "run r1: completed, 1 result posted; it is done\n")
	assert.JSONEq(t, `{"one":"1","two":"2"}`, r.output())
	assert.Contains(t, r.standing(), "run r1: completed, 3 iterations; it is done")
	out, err = complete()
	require.NoError(t, err, "said again: "+out)

	r.drive()
	assert.Len(t, r.texts, 1, "no agent is asked for what it has, nor for the proof: %q", r.texts)
	assert.Equal(t, 1, strings.Count(r.babysit("run:events", r.run, "--json"), `"RUN_COMPLETED"`))
}

// The entry that asks for the proof is not delivered once a person has closed the run, and an
// agent closes none.
func TestRunCompleteInPlaceOfTheProof(t *testing.T) {
	isPerson(t)
	r := newRunRig(t, `export async function process() { return 1; }`)
	require.Regexp(t, `^\[r1/finish-[0-9a-f]{8}\]$`, fmt.Sprint(r.step().Queued))
	out, err := r.heartbeat("run", "complete", "r1", "--inbox", r.inbox)
	require.NoError(t, err, out)
	r.drive()
	assert.Len(t, r.texts, 1, "%q", r.texts)

	cmd := exec.Command("heartbeat", "run", "complete", "r1", "--inbox", r.inbox)
	cmd.Dir, cmd.Env = r.dir, append(os.Environ(), "CLAUDE_CODE_SESSION_ID=s1")
	text, err := cmd.CombinedOutput()
	require.Error(t, err)
	assert.Contains(t, string(text), "complete is a person's to say")
}

// A session that has used up its iterations may stop, and its file stays.
func TestRunLimits(t *testing.T) {
	r := newProcessRig(t, twoTasksJS)
	states := filepath.Join(r.dir, "states")
	r.startRun("--session-id", "s1", "--state-dir", states, "--max-iterations", "1")
	r.sessionID = "s1"
	r.drive("--state-dir", states)
	assert.Len(t, r.texts, 2, "%q", r.texts) // begin, and what start had queued
	assert.FileExists(t, filepath.Join(states, "s1.md"))
	assert.Contains(t, r.said, "its session has had its 1 iterations (max_iterations): see "+filepath.Join(states, "s1.md"))

	// With a higher limit it goes on.
	file, err := orchestrate.StateFileAt(states, "s1")
	require.NoError(t, err)
	s, err := file.Read()
	require.NoError(t, err)
	s.Iteration, s.MaxIterations = 30, 99
	s.LastIterationAt = orchestrate.StateStamp(time.Now())
	require.NoError(t, file.Write(s))

	r.drive("--state-dir", states)
	assert.Equal(t, "completed", r.state())
}

// run status shows what holds a run, and the answer lets the run continue.
func TestRunHeld(t *testing.T) {
	r := newProcessRig(t, `export async function process(inputs, ctx) {
  const b = await ctx.breakpoint({question:'Ship it?'});
  return {b};
}`)
	out, err := r.heartbeat("run", "start", "--inbox", r.inbox, "--babysitter", r.babysitter, "--entry", "p.mjs", "--process-id", "p", "--run-id", "r1")
	require.NoError(t, err, out)
	assert.Contains(t, out, "run r1: waiting, 1 effect waits for a person\n")
	assert.Contains(t, out, "heartbeat-launch --inbox "+r.inbox+" --run "+r.run+" --babysitter "+r.babysitter+" -- claude ")
	assert.Regexp(t, `^run r1: waiting for 1 breakpoint, 1 iteration; waits for a person: \w+ Ship it\?\n$`, r.standing())

	out, err = r.heartbeat("run", "resume", "--inbox", r.inbox, "r1", "--json", "--babysitter", r.babysitter)
	require.NoError(t, err, out)
	var again begun
	require.NoError(t, json.Unmarshal([]byte(out), &again))
	require.Len(t, again.Held, 1)
	assert.Contains(t, again.Hook, r.babysitter)
	out, err = r.heartbeat("breakpoint", "approve", again.Held[0].Effect, "--inbox", r.inbox, "--babysitter", r.babysitter)
	require.NoError(t, err, out)
	r.drive()
	assert.Equal(t, "completed", r.state())
}

// begun is what run start and run resume print with --json.
type begun struct {
	orchestrate.Report
	Session *struct {
		ID            string `json:"id"`
		File          string `json:"state_file"`
		Iteration     int    `json:"iteration"`
		MaxIterations int    `json:"max_iterations"`
	} `json:"session"`
	Hook []string `json:"hook"`
}
