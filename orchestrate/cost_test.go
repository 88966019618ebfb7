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

	"heartbeat/inbox"
	"heartbeat/internal/meter"
	"heartbeat/internal/price"
)

// spender is a session whose client says what it costs: 0.006 dollars a request.
type spender struct {
	*runRig
	session    string
	flags      []string
	requests   int64
	transcript string
	active     bool
}

const requestNanos = 6_000_000

func (r *runRig) spender(session string, flags ...string) *spender {
	r.t.Helper()
	s := &spender{runRig: r, session: session, flags: flags, transcript: filepath.Join(r.t.TempDir(), session+".jsonl")}
	s.event("SessionStart", "")
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

// spend makes a request, of which the client says the price.
func (s *spender) spend() {
	s.t.Helper()
	s.requests++
	s.line(fmt.Sprintf(`{"type":"assistant","message":{"id":"%s-%d","model":"claude-opus-5-5","usage":{"input_tokens":1000,"output_tokens":100},"content":[{"type":"tool_use","id":"t"}]}}`, s.session, s.requests))
	s.says()
}

// says is the client's status line.
func (s *spender) says() {
	_, err := meter.Advance(filepath.Dir(s.inbox), meter.Reading{
		Session: s.session, Transcript: s.transcript, Client: "client-" + s.session, HasTotal: true, Total: s.requests * requestNanos,
		ContextPercent: -1, Usage: &price.Tokens{Input: 1000, Output: 100},
	})
	require.NoError(s.t, err)
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
	var out []byte
	ended := make(chan error)
	go func() {
		out, err = cmd.Output()
		ended <- err
	}()
	for waits := true; waits; {
		select {
		case err := <-ended:
			require.NoError(s.t, err, stderr.String())
			waits = false
		default:
			if s.requests > 0 {
				s.says() // the hook may wait for it
			}
		}
	}
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

// tools is the end of a batch of tools; it returns why the client is to ask no more.
func (s *spender) tools() string {
	s.t.Helper()
	return s.event("PostToolBatch", "").Get("stopReason").String()
}

func (r *runRig) letters() (open []inbox.Letter) {
	r.t.Helper()
	box, err := inbox.Open(r.inbox, inbox.Options{})
	require.NoError(r.t, err)
	all, _, err := box.Letters()
	require.NoError(r.t, err)
	for _, l := range all {
		if l.RequeuedAt == nil {
			open = append(open, l)
		}
	}
	return open
}

func (r *runRig) resume(flags ...string) (string, error) {
	return r.heartbeat(append([]string{"run", "resume", "r1", "--inbox", r.inbox, "--babysitter", r.babysitter}, flags...)...)
}

const threeTasksJS = `export async function process(inputs, ctx) {
  const a = await ctx.task(agent, {q:'a'}); const b = await ctx.task(agent, {q:'b'}); return [a, b, await ctx.task(agent, {q:'c'})]; }`

// A run that has cost what it may is stopped between two requests, and waits for a person.
// Nothing of it is delivered, over sessions, requeues and resumes, until somebody gives it
// a higher limit, which then holds in place of the hook's.
func TestRunReachesItsLimit(t *testing.T) {
	r := newRunRig(t, threeTasksJS)
	limit := []string{"--max-cost-per-run", "0.01"}
	s := r.spender("s1", limit...)
	s.spend()
	require.Contains(t, s.stop("hello"), "agent a")
	s.spend()
	require.Empty(t, s.tools())
	s.spend()
	assert.Regexp(t, `^heartbeat: entry r1/\w+ was stopped: its run cost 0.012 of 0.01 USD$`, s.tools())

	open := r.letters()
	require.Len(t, open, 1)
	assert.Equal(t, inbox.ReasonOverBudget, open[0].Reason)
	s2 := r.spender("s2", limit...)
	s2.spend()
	assert.Empty(t, s2.stop("hello"))
	assert.Equal(t, "waiting", r.state())
	assert.Contains(t, r.standing(), "waits for a person: "+open[0].ID[3:]+" its entry "+open[0].ID+" was set aside: over_budget: its run cost 0.012 of 0.01 USD")
	assert.Contains(t, r.standing(), "; it has cost 0.012 of 0.01 USD\n")
	out, err := r.heartbeat("status", "--inbox", r.inbox)
	require.NoError(t, err, out)
	type_ := "heartbeat run resume --inbox " + r.inbox + " --max-cost-per-run 1 r1"
	assert.Contains(t, strings.Join(strings.Fields(out), " "), "run r1 has reached its limit (it has cost 0.012 of 0.01 USD), and nothing of it is delivered: `"+type_+"` has it go on")
	out, err = r.heartbeat("status", "--inbox", r.inbox, "--json")
	require.NoError(t, err, out)
	assert.Equal(t, `[{"run":"r1","cost_usd":0.012,"limit_usd":0.01,"limit_reached":true}]`,
		gjson.Get(out, `stopped_runs.#.{run,cost_usd,limit_usd,limit_reached}`).Raw)
	assert.Equal(t, type_, gjson.Get(out, "stopped_runs.0.type_this").String())

	// Nothing else lets it go on.
	out, err = r.heartbeat("dead-letter", "requeue", "--inbox", r.inbox, "--all")
	require.Error(t, err)
	assert.Contains(t, out, "its run has reached its limit")
	out, err = r.heartbeat("dead-letter", "requeue", "--inbox", r.inbox, "--all", "--max-time", "1h")
	require.Error(t, err)
	assert.Contains(t, out, "its run has reached its limit")
	out, err = r.resume()
	require.NoError(t, err, out)
	assert.Contains(t, out, "1 effect waits for a person")
	out, err = r.resume("--max-cost-per-run", "0.012")
	require.Error(t, err)
	assert.Contains(t, out, "run r1 has cost 0.012 of 0.012 USD already: give more than that")
	assert.Empty(t, s2.stop("hello"))
	require.NoError(t, os.Truncate(filepath.Join(filepath.Dir(r.inbox), ".costs.jsonl"), 0))
	assert.Empty(t, s2.stop("hello"))

	out, err = r.resume("--max-cost-per-run", "0.02")
	require.NoError(t, err, out)
	assert.Empty(t, r.letters())
	require.Contains(t, s2.stop("hello"), "agent a")
	s2.spend()
	require.Empty(t, s2.tools())
	require.Contains(t, s2.stop("a is done"), "agent b", "0.018 of 0.02 dollars")
	s2.spend()
	assert.Contains(t, s2.tools(), "its run cost 0.024 of 0.02 USD")
	assert.Empty(t, s2.stop("hello"))

	// A higher limit of the hook lets it go on as well.
	raised := r.spender("s3", "--max-cost-per-run", "0.5")
	out, err = r.heartbeat("run", "resume", "r1", "--inbox", r.inbox, "--babysitter", r.babysitter, "--max-cost-per-run", "0")
	require.NoError(t, err, out)
	assert.Contains(t, out, "waits for a person", "the hook said 0.01")
	assert.Empty(t, raised.stop("hello"))
	out, err = r.resume()
	require.NoError(t, err, out)
	require.Empty(t, r.letters())
	assert.Empty(t, s2.stop("hello"), "its flag is 0.01")

	// The command was killed when it had set the limit.
	box, err := inbox.Open(r.inbox, inbox.Options{})
	require.NoError(t, err)
	tx, err := box.Begin(t.Context())
	require.NoError(t, err)
	require.NoError(t, tx.LimitRun("r1", 1_000_000_000))
	require.NoError(t, tx.Commit())
	require.NoError(t, tx.Close())
	out, err = r.heartbeat("status", "--inbox", r.inbox)
	require.NoError(t, err, out)
	assert.Contains(t, strings.Join(strings.Fields(out), " "), "run r1 was stopped at its limit, and may cost more by now (it has cost 0.02 of 1.00 USD), and nothing of it is delivered: `heartbeat run resume --inbox "+r.inbox+" r1`")
	out, err = r.resume()
	require.NoError(t, err, out)
	r.drive()
	assert.Equal(t, "completed", r.state())
	assert.Contains(t, r.standing(), "its proof was given")
}

// One run at its limit keeps no other from going on, and the entry that completes a run is
// asked for again once the run may cost more.
func TestRunsHaveLimitsOfTheirOwn(t *testing.T) {
	r := newRunRig(t, `export async function process(inputs, ctx) { return await ctx.task(agent, {q:'a'}); }`)
	r.babysit("run:create", "--harness", "custom", "--process-id", "p", "--entry", "p.mjs#process", "--run-id", "r2", "--json")
	s := r.spender("s1", "--max-cost-per-run", "0.01", "--run", filepath.Join(filepath.Dir(r.run), "r2"))
	s.spend()
	require.Contains(t, s.stop("hello"), "agent a")
	s.spend()
	s.spend()
	text := s.stop("done")
	for n := 0; text != ""; n++ {
		require.Less(t, n, 5)
		reply := "done"
		if promise := promised.FindString(text); promise != "" {
			reply = promise
			assert.Contains(t, text, "r2")
		}
		text = s.stop(reply)
	}
	assert.Equal(t, "completed", r.state())
	assert.Contains(t, r.standing(), "run r1: completed, 1 entry dead-lettered")
	assert.Contains(t, r.standing(), "run r2: completed, 2 iterations; its proof was given")
	assert.Contains(t, s.said, "run r1", "%s", s.said)
	require.Len(t, r.letters(), 1, "the proof is asked for once")

	out, err := r.resume()
	require.Error(t, err)
	assert.Contains(t, out, "run r1 is completed: there is nothing to resume")
	out, err = r.resume("--max-cost-per-run", "5")
	require.NoError(t, err, out)
	r.drive()
	assert.Contains(t, r.standing(), "run r1: completed, 2 iterations; its proof was given")
}

// With post-error a run learns that it is at its limit, and fails unless it catches that.
// Reopened with a higher limit it goes on.
func TestRunFailsAtItsLimit(t *testing.T) {
	r := newRunRig(t, `export async function process(inputs, ctx) { return await ctx.task(agent, {q:'a'}); }`)
	s := r.spender("s1", "--max-cost-per-run", "0.01", "--on-unresolved", "post-error")
	s.spend()
	require.Contains(t, s.stop("hello"), "agent a")
	s.spend()
	s.spend()
	require.Contains(t, s.tools(), "its run cost 0.012 of 0.01 USD")
	_, effect, _ := strings.Cut(r.letters()[0].ID, "/")
	assert.Empty(t, r.spender("s2", s.flags...).stop("hello"))
	assert.Equal(t, "failed", r.state())
	assert.Contains(t, r.standing(), "; it has cost 0.012 of 0.01 USD")
	require.Len(t, r.letters(), 2, "the effect, and what tells of the failure")

	out, err := r.resume("--again", effect, "--max-cost-per-run", "1")
	require.NoError(t, err, out)
	assert.Contains(t, out, "1 entry queued")
	r.drive()
	assert.Equal(t, "completed", r.state())
}
