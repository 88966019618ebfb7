package client

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/testing/model"
	"heartbeat/internal/words"
)

// runningAway asks for one tool after the other, about the entries whose tags
// are named, until it was asked most times.
func runningAway(most int, command string, usage model.Usage, runaways ...string) model.Script {
	var mu sync.Mutex
	asked := 0
	return func(r model.Request) model.Reply {
		tag := lastTag(r)
		mu.Lock()
		defer mu.Unlock()
		for _, away := range runaways {
			if tag == away || tag == "" { // the result of a tool
				if asked++; asked < most {
					return model.Tool("Bash", map[string]any{"command": command}).Using(usage)
				}
			}
		}
		return model.Text(ownReply(tag)).Using(usage)
	}
}

var someTokens = model.Usage{Input: 1000, Output: 100}

// overBudget are the dead letters, as far as these tests read them.
type overBudget struct {
	ID       string  `json:"id"`
	Reason   string  `json:"reason"`
	CostUSD  float64 `json:"cost_usd"`
	Requests int     `json:"requests"`
	Attempts int     `json:"attempts"`
	Failure  struct{ Error, Message string }
}

func (r *rig) overBudget() (all []overBudget) {
	r.t.Helper()
	raw, err := os.ReadFile(r.path(".dead-letter.jsonl"))
	if os.IsNotExist(err) {
		return nil
	}
	require.NoError(r.t, err)
	for line := range strings.Lines(string(raw)) {
		var l overBudget
		require.NoError(r.t, json.Unmarshal([]byte(line), &l))
		if l.Reason != "" {
			all = append(all, l)
		}
	}
	return all
}

// after counts the model's requests from the one that an entry came with.
func (r *rig) after(tag string) (n int) {
	for _, request := range r.Model.MainRequests() {
		if n > 0 || lastTag(request) == tag {
			n++
		}
	}
	return n
}

// cent is what takes 0.01 dollars.
var cent = model.Usage{Input: 2000, Output: 100}

// away is a model that asks for one tool after the other about [e1], at a cent for each answer.
func away(r model.Request) model.Reply {
	if lastTag(r) == "[e1]" || len(r.ToolResults) > 0 {
		return nothing.Using(cent)
	}
	return own(lastTag(r), 1).Using(cent)
}

// A session that runs away is stopped between two requests, with no more than one beyond the
// dollars of its entry or of the day.
func TestRunaway(t *testing.T) {
	for name, client := range map[string][]string{"terminal": nil, "print mode": {"-p"}} {
		t.Run(name+", entry", func(t *testing.T) {
			ctx := minutes(t)
			r := newRigWith(t, away)
			r.run("run away [e1]", "send", "--max-cost", "0.05", "-")
			w, log := r.managingClient(ctx, append(client, anyCommand...)).wait()
			assert.Equal(t, []int{0, 1}, []int{w.Answered, w.DeadLettered}, "%q", log)
			dead := r.overBudget()
			require.Len(t, dead, 1, r.state())
			assert.Equal(t, "over_budget", dead[0].Reason)
			assert.Regexp(t, `^it cost 0\.0[56] of 0\.05 USD$`, dead[0].Failure.Message)
			assert.LessOrEqual(t, r.after("[e1]"), 6)
			r.sessionsGone(ctx)
		})
		t.Run(name+", day", func(t *testing.T) {
			ctx := minutes(t)
			r := newRigWith(t, away)
			r.run("run away [e1]", "send", "-")
			w, log := r.managingClient(ctx, append(client, anyCommand...), "--max-cost-per-day", "0.05").wait()
			assert.Equal(t, []any{"paused", 1}, []any{w.Reason, w.Queued}, "%q", log)
			assert.Regexp(t, `today cost 0\.0[56] of 0\.05 USD`, w.Detail)
			assert.LessOrEqual(t, r.turns(), 6)
			r.sessionsGone(ctx)
		})
	}
}

// Ten subagents that run away are stopped at their next tools each, with the requests that
// were in flight.
func TestRunawaySubagents(t *testing.T) {
	for name, client := range map[string][]string{"terminal": nil, "print mode": {"-p"}} {
		t.Run(name, func(t *testing.T) {
			ctx := minutes(t)
			r := newRigWith(t, func(r model.Request) model.Reply {
				switch tag := asksAbout(r); {
				case tag == "[e1]" && len(r.ToolResults) == 0:
					return agents(10, map[string]any{"prompt": "help with it [s1]"}).Using(cent)
				case tag == "[s1]", tag == "[e1]":
					return nothing.Using(cent)
				default:
					return own(tag, 1).Using(cent)
				}
			})
			r.run("run away [e1]", "send", "--max-cost", "0.05", "-")
			w, log := r.managingClient(ctx, append(client, anyCommand...)).wait()
			assert.Equal(t, []int{0, 1}, []int{w.Answered, w.DeadLettered}, "%q", log)
			dead := r.overBudget()
			require.Len(t, dead, 1, r.state())
			assert.Equal(t, "over_budget", dead[0].Reason)
			t.Log(dead[0].Failure.Message, r.turns())
			assert.LessOrEqual(t, r.turns(), 1+5+10+1, "the prompt's, those up to the limit, and one of each that asks")
			r.sessionsGone(ctx)
		})
	}
}

// So is one at a limit of tokens, and the next entry is answered in another session.
func TestManagedRunaway(t *testing.T) {
	for name, client := range map[string][]string{"terminal": nil, "print mode": {"-p"}} {
		t.Run(name, func(t *testing.T) {
			ctx := minutes(t)
			r := newRigWith(t, runningAway(60, "true", someTokens, "[e1]")).add(some(2)...)
			w, log := r.managingClient(ctx, append(client, anyCommand...), "--max-tokens-per-entry", "8k").wait()
			assert.Equal(t, []int{3, 1, 1}, []int{w.Exit, w.Answered, w.DeadLettered}, "%q", log)
			dead := r.overBudget()
			require.Len(t, dead, 1, r.state())
			assert.Equal(t, "over_budget", dead[0].Reason)
			assert.Equal(t, "it took 8800 of 8000 tokens", dead[0].Failure.Message)
			assert.Equal(t, 8, dead[0].Requests)
			r.sessionsGone(ctx)
		})
	}
}

// A tool that takes long is ended with its session at the entry's limit of time.
func TestManagedRunawayTime(t *testing.T) {
	all := some(2)
	ctx := minutes(t)
	r := newRigWith(t, runningAway(60, "tail -f /dev/null", someTokens, "[e1]")).add(all...)
	limit := unhurried(t, 5*time.Second, clients) // the next entry has it as well
	began := time.Now()
	w, log := r.managingClient(ctx, anyCommand, "--max-time-per-entry", limit.String()).wait()
	t.Logf("%s: %q", time.Since(began), log)
	assert.Equal(t, 1, w.Answered)
	dead := r.overBudget()
	require.Len(t, dead, 1, r.state())
	assert.Equal(t, "over_budget", dead[0].Reason)
	assert.Regexp(t, `^it took .* of `+words.Took(limit)+`$`, dead[0].Failure.Message)
	assert.GreaterOrEqual(t, tookOf(t, dead[0].Failure.Message), limit)
	r.sessionsGone(ctx)
}

// tookOf is what a sentence says that an entry took.
func tookOf(t testing.TB, said string) time.Duration {
	t.Helper()
	m := regexp.MustCompile(`it took (.*) of `).FindStringSubmatch(said)
	require.NotNil(t, m, said)
	took, err := time.ParseDuration(strings.ReplaceAll(m[1], " ", ""))
	require.NoError(t, err, said)
	return took
}

// Over the day's limit delivery pauses until midnight, with the figures.
func TestManagedDayLimit(t *testing.T) {
	all := some(6)
	ctx := minutes(t)
	r := newRigWith(t, runningAway(0, "true", someTokens)).add(all...)
	w, log := r.managingClient(ctx, anyCommand, "--max-cost-per-day", "0.02").wait()
	assert.Equal(t, "paused", w.Reason, "%q", log)
	assert.Equal(t, 75, w.Exit)
	assert.Contains(t, w.Detail, "today cost 0.0", w.Detail)
	assert.Contains(t, w.Detail, "of 0.02 USD")
	view := r.status()
	assert.Equal(t, "paused", view.State)
	assert.Contains(t, view.Why, "of 0.02 USD")
	t.Log(view.Why)
	assert.LessOrEqual(t, len(r.Model.MainRequests()), 5, "the fourth reaches it, and one more may follow")
	before := r.turns()
	w, _ = r.managingClient(ctx, anyCommand, "--max-cost-per-day", "0.02").wait()
	assert.Equal(t, 75, w.Exit)
	assert.Equal(t, before, r.turns(), "no session is started for nothing")
}

// What a retry costs counts, and so does what a killed session cost.
func TestManagedRetryCounts(t *testing.T) {
	ctx := minutes(t)
	away, asked := runningAway(60, "true", someTokens, "[e1]"), 0
	r := newRigWith(t, func(q model.Request) model.Reply {
		if tag := lastTag(q); tag == "[e1]" || tag == "" {
			if asked++; asked == 5 { // one request at a time
				return model.Hang() // in the midst of its entry, however late it is killed
			}
		}
		return away(q)
	}).add(some(1)...)
	m := r.managingClient(ctx, anyCommand, "--max-tokens-per-entry", "8k", "--on-orphan", "retry")
	r.until(ctx, "it asks for tools", func() bool { return r.after("[e1]") >= 5 })
	r.killClient()
	w, log := m.wait()
	dead := r.overBudget()
	require.Len(t, dead, 1, "%q %s", log, r.state())
	assert.Equal(t, 1, w.DeadLettered)
	assert.Contains(t, dead[0].Failure.Message, "of 8000 tokens in 2 attempts")
	t.Log(dead[0].Failure.Message)
	assert.LessOrEqual(t, dead[0].Requests, 9, "one beyond, or one that was asked when the client was killed")
	// The killed client took the last lines of its transcript along, and the next session
	// had a prompt of its own.
	assert.LessOrEqual(t, r.after("[e1]"), 8+5)
}

// An entry that was stopped goes back with a higher limit, and is answered.
func TestManagedRequeueWithLimit(t *testing.T) {
	ctx := minutes(t)
	r := newRigWith(t, runningAway(12, "true", someTokens, "[e1]")).add(some(1)...)
	flags := []string{"--max-tokens-per-entry", "5k"}
	w, log := r.managingClient(ctx, anyCommand, flags...).wait()
	require.Equal(t, 1, w.DeadLettered, "%q", log)
	id := r.deadLetters()[0].EntryID
	r.run("", "dead-letter", "requeue", id, "--max-tokens", "100k")
	w, log = r.managingClient(ctx, anyCommand, flags...).wait()
	assert.Equal(t, worked{Reason: "drained", Answered: 1, Sessions: 1}, w, "%q", log)
}

// A hook that is killed between its commit and its decision leaves the stop to the next
// event of the turn. A person's own turn afterwards is not stopped, whatever it costs.
func TestStoppedAfterAll(t *testing.T) {
	ctx := minutes(t)
	r := newRigWith(t, func(request model.Request) model.Reply {
		if lastTag(request) == "[p2]" || lastTag(request) == "[p1]" {
			return model.Text("ready").Using(someTokens)
		}
		return model.Tool("Bash", map[string]any{"command": "true"}).Using(someTokens)
	})
	r.install("--max-tokens-per-entry", "5k").add(some(1)...)
	lost := r.path("lost")
	wrapper := r.path("hook.sh")
	require.NoError(t, os.WriteFile(wrapper, []byte(`#!/bin/sh
out=$(`+r.stop+` --inbox `+r.inbox+` --max-tokens-per-entry 5k)
case $out in *'"continue":false'*) if mkdir `+lost+` 2>/dev/null; then exit 137; fi ;; esac
printf '%s' "$out"
`), 0o700))
	r.edit(func(settings map[string]any) {
		settings["hooks"].(map[string]any)["PostToolBatch"] = stopHook(wrapper)
	})
	s := r.attended(ctx, r.withTools())
	_, err := s.WaitScreen(ctx, 0, "was stopped: it took")
	require.NoError(t, err)
	assert.DirExists(t, lost, "the first decision was not lost")
	dead := r.overBudget()
	require.Len(t, dead, 1, r.state())
	assert.Equal(t, 5, dead[0].Requests)
	n := r.after("[e1]")
	assert.LessOrEqual(t, n, 6, "one more for the decision that was lost")

	require.NoError(t, s.Submit(ctx, prompt(2)))
	r.asked(ctx, "[p2]", 1)
	r.quit(ctx, s)
}

// withTools lets an attended session run any command.
func (r *rig) withTools() Options {
	o := r.options()
	o.Args = append(o.Args, anyCommand...)
	return o
}

// What a person asks for in a session of the hook is never stopped by an entry's limit.
func TestPersonIsNotStopped(t *testing.T) {
	ctx := minutes(t)
	r := newRigWith(t, runningAway(8, "true", someTokens, "[p1]"))
	r.install("--max-tokens-per-entry", "2k", "--max-cost-per-day", "0.001")
	s := r.attended(ctx, r.withTools())
	r.until(ctx, "its own turn has ended", func() bool { return r.approved() })
	assert.Len(t, r.Model.MainRequests(), 8)
	assert.NotContains(t, s.Screen(), "wasstopped")
	r.quit(ctx, s)
}

// An entry's dollars hold in print mode as they do in a terminal.
func TestManagedRunawayPrint(t *testing.T) {
	ctx := minutes(t)
	r := newRigWith(t, runningAway(60, "true", someTokens, "[e1]")).add(some(2)...)
	w, log := r.managingClient(ctx, append([]string{"-p"}, anyCommand...), "--max-cost-per-entry", "0.05", "--max-attempts", "1").wait()
	t.Logf("%+v %q %+v", w, log, r.overBudget())
	assert.LessOrEqual(t, len(r.Model.MainRequests()), 25)
	assert.Len(t, r.deadLetters(), 1)
	assert.Equal(t, 1, w.Answered)
	r.sessionsGone(ctx)
}

// A turn whose entry is set aside meanwhile ends all the same: what it said is kept with the
// dead letter, and is the result once a person says so.
func TestLateAnswer(t *testing.T) {
	ctx := minutes(t)
	var r *rig
	r = newRigWith(t, func(request model.Request) model.Reply {
		tag := lastTag(request)
		if tag == "[e1]" {
			r.run("", "recover", "--force")
		}
		return model.Text(ownReply(tag)).Using(someTokens)
	})
	r.install().add(some(2)...)
	s := r.attended(ctx, r.withTools())
	r.until(ctx, "both entries are dealt with", func() bool { return len(r.results()) == 1 })
	dead := r.deadLetters()
	require.Len(t, dead, 2, "the letter, and what came of it")
	r.run("", "dead-letter", "accept", dead[0].EntryID)
	results := r.results()
	require.Len(t, results, 2)
	assert.Equal(t, []any{ownReply("[e1]"), dead[0].EntryID}, []any{results[1].Reply, results[1].EntryID})
	r.quit(ctx, s)
}
