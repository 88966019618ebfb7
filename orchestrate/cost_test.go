package orchestrate_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"
)

// spender is a session whose client says what it costs: 0.006 dollars a request.
type spender struct {
	*runRig
	session    string
	flags      []string
	requests   int64
	transcript string
	active     bool
	shown      string // as it started
}

func (r *runRig) spender(session string, flags ...string) *spender {
	r.t.Helper()
	s := &spender{runRig: r, session: session, flags: flags, transcript: filepath.Join(r.t.TempDir(), session+".jsonl")}
	s.shown = s.event("SessionStart", "").Get("systemMessage").String()
	s.line(`{"type":"user","message":{"content":"begin"}}`)
	return s
}

func (s *spender) line(text string) {
	f, err := os.OpenFile(s.transcript, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	require.NoError(s.t, err)
	_, err = f.WriteString(text + "\n")
	require.NoError(s.t, err)
	require.NoError(s.t, f.Close())
}

// spend makes a request.
func (s *spender) spend() {
	s.t.Helper()
	s.requests++
	s.line(fmt.Sprintf(`{"type":"assistant","message":{"id":"%s-%d","model":"claude-opus-5-5","usage":{"input_tokens":1000,"output_tokens":100},"content":[{"type":"tool_use","id":"t"}]}}`, s.session, s.requests))
}

func (s *spender) event(name, reply string) gjson.Result {
	s.t.Helper()
	in, err := json.Marshal(map[string]any{
		"hook_event_name": name, "session_id": s.session, "prompt_id": "p-" + s.session, "transcript_path": s.transcript,
		"stop_hook_active": s.active, "last_assistant_message": reply,
	})
	require.NoError(s.t, err)
	cmd := exec.Command(s.hook, append([]string{"--inbox", s.inbox, "--run", s.run, "--babysitter", s.babysitter}, s.flags...)...)
	cmd.Dir, cmd.Env, cmd.Stdin = s.dir, append(os.Environ(), fmt.Sprintf("CLAUDE_PID=%d", os.Getpid())), strings.NewReader(string(in))
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	require.NoError(s.t, err, stderr.String())
	s.said = stderr.String()
	return gjson.ParseBytes(out)
}

// stop ends a turn and returns the text that begins the next one, "" for none.
func (s *spender) stop(reply string) string {
	s.t.Helper()
	text := s.event("Stop", reply).Get("reason").String()
	if text != "" {
		s.active = true
		s.line(`{"type":"user","message":{"content":"Stop hook feedback"}}`)
	}
	return text
}

// What a run has cost is the sum of its entries, and of no other run's.
func TestWhatARunHasCost(t *testing.T) {
	r := newRunRig(t, `export async function process(inputs, ctx) { return await ctx.task(agent, {q:'a'}); }`)
	s := r.spender("s1")
	s.spend()
	require.Contains(t, s.stop("hello"), "agent a")
	s.spend()
	assert.Contains(t, r.standing(), "; it has cost 0.006 USD\n", "what is counted now")
	s.spend()
	text := s.stop("done")
	require.NotEmpty(t, text)
	assert.Contains(t, r.standing(), "; it has cost 0.01 USD\n")
	kept := r.result()
	assert.Equal(t, "done", kept.Get("value").String(), "what the process gets has nothing of it")
	assert.InDelta(t, 0.012, kept.Get("metadata.cost_usd").Float(), 1e-9)
	assert.EqualValues(t, 2000, kept.Get("metadata.tokens.input").Int())
	assert.EqualValues(t, 2, kept.Get("metadata.requests").Int())
	assert.Equal(t, "claude-opus-5-5", kept.Get("metadata.model").String())
	out, err := r.heartbeat("run", "resume", "r1", "--inbox", r.inbox, "--max-cost-per-run", "5")
	require.Error(t, err)
	assert.Contains(t, out, "is no limit any more: limit each entry of the run")
}

// result is the one result that the run has.
func (r *runRig) result() gjson.Result {
	r.t.Helper()
	all, err := filepath.Glob(filepath.Join(r.run, "tasks", "*", "result.json"))
	require.NoError(r.t, err)
	require.Len(r.t, all, 1)
	text, err := os.ReadFile(all[0])
	require.NoError(r.t, err)
	return gjson.ParseBytes(text)
}

// A failure has what it has cost, too, and an effect of which nothing is known has no metadata.
func TestWhatAFailureHasCost(t *testing.T) {
	process := `export async function process(inputs, ctx) { return await ctx.task(agent, {q:'a'}); }`
	for name, spent := range map[string]bool{"known": true, "unknown": false} {
		t.Run(name, func(t *testing.T) {
			r := newRunRig(t, process)
			s := r.spender("s1")
			require.Contains(t, s.stop("hello"), "agent a")
			if spent {
				s.spend()
			}
			out, err := r.heartbeat("result", r.effect(), "--inbox", r.inbox, "--error", "no database")
			require.NoError(t, err, out)
			require.NotEmpty(t, s.stop("it cannot be done"))
			kept := r.result()
			assert.Equal(t, "error", kept.Get("status").String())
			assert.Equal(t, spent, kept.Get("metadata.cost_usd").Exists(), kept.Raw)
		})
	}
}

// A result comes to its run where there is no room for a file with what it has cost.
func TestAResultWithoutRoomForItsCost(t *testing.T) {
	r := newRunRig(t, `export async function process(inputs, ctx) { return await ctx.task(agent, {q:'a'}); }`)
	s := r.spender("s1")
	require.Contains(t, s.stop("hello"), "agent a")
	s.spend()
	t.Setenv("TMPDIR", filepath.Join(t.TempDir(), "gone"))
	require.NotEmpty(t, s.stop("done"))
	assert.Contains(t, s.said, "is posted without its metadata: open ")
	assert.Equal(t, "done", r.result().Get("value").String())
	assert.False(t, r.result().Get("metadata.cost_usd").Exists())
}

// The check of a run's entry comes before its result is handed in.
func TestTheEntryOfARunIsChecked(t *testing.T) {
	r := newRunRig(t, `export async function process(inputs, ctx) { return await ctx.task(agent, {q:'a'}); }`)
	s := r.spender("s1", "--check", `test "$HEARTBEAT_REPLY" != claim`)
	require.Contains(t, s.stop("hello"), "agent a")
	assert.Contains(t, s.stop("claim"), "its check failed")
	assert.NotContains(t, r.standing(), "completed")
	assert.NoFileExists(t, filepath.Join(filepath.Dir(r.inbox), ".results.jsonl"))
	require.NotEmpty(t, s.stop("done"))
	assert.Contains(t, r.standing(), "completed")
	text, err := os.ReadFile(filepath.Join(filepath.Dir(r.inbox), ".results.jsonl"))
	require.NoError(t, err)
	assert.Equal(t, "passed", gjson.GetBytes(text, "check.status").String())
	assert.EqualValues(t, 2, gjson.GetBytes(text, "check.tries").Int())
}

// What an agent says in a turn, or hands over, is no result of its run while the check of its entry fails.
func TestARunGetsNothingUnchecked(t *testing.T) {
	for kind, handed := range map[string]bool{"agent": false, "odd": true} {
		t.Run(kind, func(t *testing.T) {
			r := newRunRig(t, `export async function process(inputs, ctx) { return await ctx.task(`+kind+`, {q:'a'}); }`)
			s := r.spender("s1", "--check", `test -e `+filepath.Join(r.dir, "right"), "--check-tries", "2")
			require.Contains(t, s.stop("hello"), kind+" a")
			effect := r.effect()
			if handed {
				t.Setenv("CLAUDE_CODE_SESSION_ID", "s1")
				for _, value := range []string{"claim", "another"} {
					out, err := r.heartbeat("result", effect, "--inbox", r.inbox, "--text", value)
					require.NoError(t, err, out)
				}
				out, err := r.heartbeat("orchestrate", "--once", "--run", r.run, "--babysitter", r.babysitter, "--inbox", r.inbox)
				require.NoError(t, err, out)
			}
			require.Contains(t, s.stop("claim"), "its check failed")
			assert.Empty(t, s.stop("claim"), "it is set aside")
			assert.Contains(t, r.standing(), "its entry r1/"+effect+" was set aside: check_failed")

			letters, err := r.heartbeat("dead-letter", "list", "--inbox", r.inbox)
			require.NoError(t, err, letters)
			out, err := r.heartbeat("dead-letter", "requeue", strings.Fields(letters)[0], "--inbox", r.inbox)
			require.NoError(t, err, out)
			require.NoError(t, os.WriteFile(filepath.Join(r.dir, "right"), nil, 0o600))
			require.Contains(t, s.stop("hello"), kind+" a")
			require.NotEmpty(t, s.stop("done"))
			assert.Equal(t, map[bool]string{false: "done", true: "another"}[handed], r.result().Get("value").String())
		})
	}
}

// An agent that hands over the results of parallel effects in one turn has each of them wait for its own check.
func TestAnAgentHandsOverAhead(t *testing.T) {
	r := newRunRig(t, `export async function process(inputs, ctx) {
  return await ctx.parallel.all([() => ctx.task(odd, {q:'a'}), () => ctx.task(odd, {q:'b'})]);
}`)
	s := r.spender("s1", "--check", `test "$HEARTBEAT_REPLY" != claim`, "--check-tries", "1")
	require.Contains(t, s.stop("hello"), "odd a")
	t.Setenv("CLAUDE_CODE_SESSION_ID", "s1")
	effects, err := filepath.Glob(filepath.Join(r.run, "tasks", "*"))
	require.NoError(t, err)
	require.Len(t, effects, 2)
	for _, effect := range effects {
		out, err := r.heartbeat("result", filepath.Base(effect), "--inbox", r.inbox, "--text", "right")
		require.NoError(t, err, out)
	}
	require.Contains(t, s.stop("done"), "odd b", "it is asked for all the same")
	assert.Empty(t, s.stop("claim"))
	assert.Contains(t, r.standing(), "was set aside: check_failed")
}
