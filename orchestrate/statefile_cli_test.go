package orchestrate_test

import (
	"encoding/json"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/orchestrate"
)

// cli is babysitter's own command, with a home directory of its own and outside of any
// session.
type cli struct{ path, home, dir string }

func findCLI(t *testing.T) cli {
	t.Helper()
	path := os.Getenv("HEARTBEAT_BABYSITTER")
	if path == "" {
		var err error
		if path, err = exec.LookPath("babysitter"); err != nil {
			t.Skip("this test compares with babysitter's own CLI: set HEARTBEAT_BABYSITTER to its path, or have it in PATH")
		}
	}
	return cli{path: path, home: t.TempDir(), dir: filepath.Join(t.TempDir(), "state")}
}

func (c cli) command(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), c.path, args...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + c.home}
	cmd.Dir = c.home
	return cmd
}

// session runs a session: command for one session and reads its output.
func (c cli) session(t *testing.T, verb, id string, more ...string) (answer cliAnswer) {
	t.Helper()
	out, err := c.command(t, append([]string{"session:" + verb, "--session-id", id, "--state-dir", c.dir, "--json"}, more...)...).Output()
	require.NoError(t, err, "%s: %s", verb, out)
	require.NoError(t, json.Unmarshal(out, &answer), "%s", out)
	return answer
}

type cliAnswer struct {
	Found          bool     `json:"found"`
	State          cliState `json:"state"`
	Prompt         string   `json:"prompt"`
	ShouldContinue bool     `json:"shouldContinue"`
	Reason         string   `json:"reason"`
	NextIteration  int      `json:"nextIteration"`
}

type cliState struct {
	Active          bool   `json:"active"`
	Iteration       int    `json:"iteration"`
	MaxIterations   int    `json:"maxIterations"`
	RunID           string `json:"runId"`
	StartedAt       string `json:"startedAt"`
	LastIterationAt string `json:"lastIterationAt"`
}

func (a cliAnswer) state() orchestrate.State {
	return orchestrate.State{
		Active: a.State.Active, Iteration: a.State.Iteration, MaxIterations: a.State.MaxIterations, RunID: a.State.RunID,
		StartedAt: a.State.StartedAt, LastIterationAt: a.State.LastIterationAt, Prompt: a.Prompt,
	}
}

func randomState(r *rand.Rand) orchestrate.State {
	pick := func(all ...string) string { return all[r.IntN(len(all))] }
	return orchestrate.State{
		Active:          r.IntN(2) == 0,
		Iteration:       r.IntN(12),
		MaxIterations:   []int{0, 3, 256, 1 << 40}[r.IntN(4)],
		RunID:           pick("", "r1", `a "quoted" one`, `"`, "with: colon", " spaces ", "it's", "é\u2028"),
		StartedAt:       pick("", orchestrate.StateStamp(noon)),
		LastIterationAt: pick("", "nonsense", orchestrate.StateStamp(time.Now().Add(-time.Hour)), "2026-11-20T12:00:00.999Z"),
		Prompt:          pick("", "do it", "a\n---\nb: c\n---", "---", "two\n\nparagraphs", "\ufeffmark", "tab\tand é 🔄", "\u0085next line"),
	}
}

// The CLI reads the files of this package, and comes to the same result.
func TestTheCLIReadsOurs(t *testing.T) {
	c := findCLI(t)
	r := rand.New(rand.NewPCG(1, 2))
	for i := range 15 {
		id := "s" + strconv.Itoa(i)
		f, err := orchestrate.StateFileAt(c.dir, id)
		require.NoError(t, err)
		want := randomState(r)
		require.NoError(t, f.Write(want))
		ours, err := f.Read()
		require.NoError(t, err)
		theirs := c.session(t, "state", id)
		assert.Equal(t, theirs.state(), ours, "%+v", want)

		check := c.session(t, "check-iteration", id)
		switch {
		case check.ShouldContinue:
			assert.Empty(t, ours.Limit(), "%+v", ours)
			assert.Equal(t, check.NextIteration, ours.Next(time.Now()).Iteration)
		default:
			assert.Equal(t, "max_iterations_reached", check.Reason)
			assert.Contains(t, ours.Limit(), "(max_iterations)", "%+v", ours)
		}
	}
}

// This package reads the files of the CLI after any of its changes.
func TestWeReadTheCLIs(t *testing.T) {
	c := findCLI(t)
	f, err := orchestrate.StateFileAt(c.dir, "s")
	require.NoError(t, err)
	same := func() {
		t.Helper()
		ours, err := f.Read()
		require.NoError(t, err)
		assert.Equal(t, c.session(t, "state", "s").state(), ours)
	}
	c.session(t, "init", "s", "--max-iterations", "7", "--run-id", "r1", "--prompt", "  do\n---\nit  ")
	same()
	c.session(t, "update", "s", "--iteration", "6", "--iteration-times", "1,x,-2, 30", "--last-iteration-at", orchestrate.StateStamp(noon))
	same()
	s, err := f.Read()
	require.NoError(t, err)
	require.NoError(t, f.Write(s.Next(noon.Add(time.Minute))))
	same()
	c.session(t, "update", "s", "--delete")
	_, err = f.Read()
	require.ErrorIs(t, err, os.ErrNotExist)
}

// garbage are invalid state files.
var garbage = []string{
	"", "nothing of it", "---", "---\n", "---\n---", "---\nactive: TRUE\n---\nx", "---\r\nactive: 'true'\r\niteration: \"4\"\r\n---\r\n body \r\n",
	"before\n---\niteration: 5\niteration: 6x7\n---\nafter", "---\niteration: -3\nmax_iterations: +2\n---", "---\niteration: \"\n---\n",
	"---\nrun_id: \"a\nstarted_at: b\"\n: c\niteration_times: 1,,2,0,-1,3.9, 4 \n---\n\n\nbody\n---\n", "---\nactive: true\nno end",
	"\ufeff---\niteration: 9\n---\n", "---\niteration: 0x10\nmax_iterations: 1e3\n---\n", "---\nmax_iterations: 0\n---\n", "---\niteration : 8\n ---  \nx",
	"---\niteration: 1" + strings.Repeat("0", 400) + "\n---\n",
}

func TestGarbageIsReadAsTheCLIReadsIt(t *testing.T) {
	c := findCLI(t)
	require.NoError(t, os.MkdirAll(c.dir, 0o700))
	for i, content := range garbage {
		id := "g" + strconv.Itoa(i)
		require.NoError(t, os.WriteFile(filepath.Join(c.dir, id+".md"), []byte(content), 0o600))
		assert.Equal(t, c.session(t, "state", id).state(), orchestrate.ParseState([]byte(content)), "%q", content)
	}
}

// promises are messages with and without a promise.
var promises = []string{
	"", "none", "<promise>x</promise>", "<promise> a \n\t b </promise> and <promise>c</promise>", "<promise></promise>", "<promise>open",
	"</promise><promise>y</promise>", "<promise>a<promise>b</promise></promise>", "<Promise>x</Promise>", "<promise >x</promise>",
	"<promise>\ufeffx\u0085\u00a0\u2028y</promise>", "```\n<promise>z</promise>\n```",
}

func TestPromisesAreThoseOfTheCLI(t *testing.T) {
	c := findCLI(t)
	for _, message := range promises {
		line, err := json.Marshal(map[string]any{"type": "assistant", "message": map[string]any{
			"role": "assistant", "content": []any{map[string]string{"type": "text", "text": message}},
		}})
		require.NoError(t, err)
		path := filepath.Join(c.home, "transcript.jsonl")
		require.NoError(t, os.WriteFile(path, append(line, '\n'), 0o600))
		out, err := c.command(t, "session:last-message", "--transcript-path", path, "--json").Output()
		require.NoError(t, err)
		var theirs struct {
			HasPromise   bool
			PromiseValue string
		}
		require.NoError(t, json.Unmarshal(out, &theirs))
		value, ok := orchestrate.PromiseIn(message)
		assert.Equal(t, theirs.HasPromise, ok, "%q", message)
		assert.Equal(t, theirs.PromiseValue, value, "%q", message)
	}
}

// The CLI finds the session by the client's file.
func TestTheCLIFindsTheSessionWeExport(t *testing.T) {
	c := findCLI(t)
	envFile := filepath.Join(c.home, "env")
	f, err := orchestrate.StateFileAt(c.dir, "real")
	require.NoError(t, err)
	require.NoError(t, orchestrate.ExportSession(envFile, f.ID()))
	require.NoError(t, f.Write(orchestrate.NewState("missing", "do it", 1, noon)))

	stop := c.command(t, "hook:run", "--hook-type", "stop", "--harness", "claude-code", "--state-dir", c.dir)
	stop.Env = append(stop.Env, "CLAUDE_ENV_FILE="+envFile)
	stop.Stdin = strings.NewReader(`{"session_id":"stale"}`)
	out, err := stop.Output()
	require.NoError(t, err)
	assert.Equal(t, "{}\n", string(out))
	_, err = f.Read()
	require.ErrorIs(t, err, os.ErrNotExist, "it has had its one iteration, so the CLI took its state away")

	start := c.command(t, "hook:run", "--hook-type", "session-start", "--harness", "claude-code", "--state-dir", c.dir)
	theirs := filepath.Join(c.home, "theirs")
	start.Env = append(start.Env, "CLAUDE_ENV_FILE="+theirs)
	start.Stdin = strings.NewReader(`{"session_id":"real"}`)
	_, err = start.Output()
	require.NoError(t, err)
	want, err := os.ReadFile(theirs)
	require.NoError(t, err)
	got, err := os.ReadFile(envFile)
	require.NoError(t, err)
	assert.Equal(t, string(want), string(got))
	require.NoError(t, orchestrate.ExportSession(theirs, "real"))
	again, err := os.ReadFile(theirs)
	require.NoError(t, err)
	assert.Equal(t, string(want), string(again), "the CLI's line is as good as ours")
}
