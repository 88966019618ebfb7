package orchestrate_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/inbox"
	"heartbeat/internal/hook"
	"heartbeat/internal/hook/runs"
	"heartbeat/internal/testing/agent"
	"heartbeat/internal/testing/stuck"
)

// A run that can take no step is named wherever a person looks, and no longer once it can.
func TestStuckRun(t *testing.T) {
	away := func(path func(r *runRig) string) (spoil, mend func(r *runRig)) {
		move := func(r *runRig, from, to string) { require.NoError(t, os.Rename(path(r)+from, path(r)+to)) }
		return func(r *runRig) { move(r, "", ".away") }, func(r *runRig) { move(r, ".away", "") }
	}
	for name, path := range map[string]func(r *runRig) string{
		"its folder is gone": func(r *runRig) string { return r.run },
		"its journal is torn": func(r *runRig) string {
			events, err := filepath.Glob(filepath.Join(r.run, "journal", "*"))
			require.NoError(r.t, err)
			require.NotEmpty(r.t, events)
			return events[0]
		},
		"babysitter fails": nil,
		"babysitter names an effect that the journal lacks": nil,
	} {
		t.Run(name, func(t *testing.T) {
			r := newRunRig(t, `export async function process(inputs, ctx) { await ctx.sleepUntil(Date.now() + 3600e3); return 1; }`)
			says := func(args ...string) string {
				t.Helper()
				out, err := r.heartbeat(append(args, "--inbox", r.inbox)...)
				require.NoError(t, err, out)
				return out
			}
			stop := func(flags ...string) { t.Helper(); r.fire("Stop", "s1", "done", false, 0, flags...) }
			var mend func(r *runRig)
			if path == nil {
				fake := filepath.Join(r.dir, "fails")
				script := "exit 3"
				if name != "babysitter fails" {
					script = `echo '{"status":"waiting","reason":"x","nextActions":[{"effectId":"../e","kind":"agent"}],"metadata":{"runId":"r1"}}'`
				}
				require.NoError(t, os.WriteFile(fake, []byte("#!/bin/sh\n"+script+"\n"), 0o700))
				stop("--babysitter", fake)
				mend = func(*runRig) {}
			} else {
				stop()
				spoiled := path(r)
				var spoil func(r *runRig)
				spoil, mend = away(func(*runRig) string { return spoiled })
				spoil(r)
				stop()
			}
			assert.Contains(t, says("status"), "the run r1 is stuck")
			assert.Contains(t, says("watch", "--once"), "run stuck")
			assert.Contains(t, says("metrics"), `heartbeat_runs_stuck{inbox="`+r.inbox+`"} 1`)
			assert.Contains(t, says("notify", "--notify", "cat"), "the run r1 is stuck")
			says("send", "something else")
			assert.Contains(t, says("status"), "the run r1 is stuck", "beside what waits")
			mend(r)
			stop() // it gets the entry
			stop() // and its answer is the run's turn
			assert.NotContains(t, says("status"), "stuck")
			assert.Contains(t, says("metrics"), `heartbeat_runs_stuck{inbox="`+r.inbox+`"} 0`)
		})
	}
}

// A run whose journal is damaged keeps no other run of the inbox from its results and answers, and hides none.
func TestDamagedRunBesideAnother(t *testing.T) {
	r := newRunRig(t, `export async function process(inputs, ctx) {
  return await ctx.parallel.all([() => ctx.task(odd, {q:'x'}), () => ctx.breakpoint({question:'Ship it?'})]); }`)
	r.babysit("run:create", "--harness", "custom", "--process-id", "p", "--entry", "p.mjs#process", "--run-id", "r2", "--json")
	second := filepath.Join(filepath.Dir(r.run), "r2")
	says := func(args ...string) (string, error) { return r.heartbeat(append(args, "--inbox", r.inbox)...) }
	for _, run := range []string{r.run, second} {
		out, err := says("orchestrate", "--run", run, "--once", "--babysitter", r.babysitter)
		require.NoError(t, err, out)
	}
	events, err := filepath.Glob(filepath.Join(r.run, "journal", "*"))
	require.NoError(t, err)
	require.NotEmpty(t, events)
	require.NoError(t, os.WriteFile(events[len(events)-1], []byte("{"), 0o600))

	shown, err := says("run", "status")
	require.Error(t, err)
	assert.Contains(t, shown, "the run is damaged")
	assert.Contains(t, shown, "run r2: waiting")
	shown, err = says("breakpoint", "list")
	require.Error(t, err)
	assert.Contains(t, shown, "the run is damaged")
	asked, _, _ := strings.Cut(strings.Split(shown, "\n")[0], "\t")
	out, err := says("breakpoint", "approve", "r2/"+asked, "--babysitter", r.babysitter)
	require.NoError(t, err, out)
	work := regexp.MustCompile(`"id":"r2/(\w+)"`)
	queued, err := os.ReadFile(r.inbox)
	require.NoError(t, err)
	out, err = says("result", work.FindStringSubmatch(string(queued))[1], "--text", "by hand")
	require.NoError(t, err, out)
	out, err = says("result", "none", "--text", "by hand")
	require.Error(t, err)
	assert.Contains(t, out, "the run is damaged", "which may have had it")
	out, err = says("orchestrate", "--run", filepath.Join(r.dir, "nowhere"), "--run", r.run, "--run", second, "--once", "--babysitter", r.babysitter)
	require.Error(t, err)
	assert.Contains(t, out, "there is no such run")
	assert.Contains(t, out, "the run is damaged")
	assert.Contains(t, out, "run r2: completed, 1 entry queued, 1 result posted")

	require.NoError(t, os.WriteFile(filepath.Join(r.run, "run.json"), []byte("{"), 0o600))
	for _, verb := range []string{"resume", "complete", "status"} {
		out, err = says("run", verb, "r1")
		require.Error(t, err)
		assert.Equal(t, 1, strings.Count(out, "run.json: it is not valid JSON"), "%s", out)
	}
}

// A run that goes no further by itself is named wherever a person looks, with what helps.
func TestStoppedRun(t *testing.T) {
	r := newRunRig(t, `import { existsSync } from 'node:fs';
export async function process(inputs, ctx) {
  if (!existsSync('mended')) throw new Error('it is broken');
  return await ctx.task(odd, {q:'x'}); }`)
	says := func(args ...string) string {
		t.Helper()
		out, err := r.heartbeat(append(args, "--inbox", r.inbox)...)
		require.NoError(t, err, out)
		return out
	}
	r.drive()
	assert.Contains(t, says("status"), "the run r1 needs a person: the run failed 4 times in a row, and `heartbeat run resume r1` tries again: Error: it is broken")
	assert.Contains(t, says("watch", "--once"), "run stuck")

	require.NoError(t, os.WriteFile(filepath.Join(r.dir, "mended"), nil, 0o600))
	resumed := says("run", "resume", "r1", "--babysitter", r.babysitter)
	assert.Contains(t, resumed, "'--allowedTools=Edit(/"+r.run+"/tasks/*/output.*),Bash(/", "nobody is there to allow what hands a result over")
	assert.NotContains(t, says("status"), "needs a person")
	says("cancel", "--all")
	says("orchestrate", "--run", r.run, "--once", "--babysitter", r.babysitter)
	shown := says("status")
	assert.Contains(t, shown, "was set aside: canceled: heartbeat result hands its result over, and `heartbeat dead-letter requeue --inbox "+r.inbox+" r1/")
	assert.Contains(t, says("notify", "--notify", "cat"), "the run r1 needs a person")
	effect := regexp.MustCompile(`effect (\w+)`).FindStringSubmatch(shown)[1]
	says("dead-letter", "requeue", "r1/"+effect)
	assert.NotContains(t, says("status"), "needs a person")
	says("cancel", "--all")
	says("orchestrate", "--run", r.run, "--once", "--babysitter", r.babysitter)
	says("result", effect, "--text", "by hand")
	assert.NotContains(t, says("status"), "needs a person")
	assert.Contains(t, says("run", "complete", "r1", "--babysitter", r.babysitter), "it is done")
}

// A result that no step posts, as where a run was started and no session is wired with it, is a matter for a person.
func TestNobodyTakesItsSteps(t *testing.T) {
	r := newRunRig(t, `export async function process(inputs, ctx) {
  return [await ctx.task(agent, {q:'a'}), await ctx.task(agent, {q:'b'})]; }`)
	says := func(args ...string) string {
		t.Helper()
		out, err := r.heartbeat(append(args, "--inbox", r.inbox)...)
		require.NoError(t, err, out)
		return out
	}
	queued := r.step().Queued[0]
	says("result", queued, "--text", "by hand")
	says("cancel", "--all")
	assert.NotContains(t, says("status"), "nobody takes its steps", "somebody may be about to")
	then := r.rested()
	assert.Contains(t, says("status"), "the run r1 needs a person since "+then.Format(time.DateTime)+": it could go on, and nobody takes its steps: `heartbeat orchestrate --once --inbox "+r.inbox+" --run "+r.run+"`")
	says("pause", "--reason", "deploy")
	r.rested()
	assert.NotContains(t, says("status"), "nobody takes its steps", "somebody wants it so")
	says("resume")
	other := says("send", "something else")
	assert.NotContains(t, says("status"), "nobody takes its steps", "a session comes: "+other)
	says("cancel", "--all")
	says("run", "resume", r.run, "--babysitter", r.babysitter)
	assert.NotContains(t, says("status"), "needs a person")
}

// What a process prints is taken for the end of its run only if the journal agrees: the run would else be driven as
// ended, and its process run over and over.
func TestPrintedEnd(t *testing.T) {
	r := newRunRig(t, `export async function process(inputs, ctx) {
  console.log(JSON.stringify({status:'completed', reason:'completed', metadata:{runId:'r1'}}));
  return await ctx.task(agent, {q:'a'}); }`)
	out, err := r.heartbeat("orchestrate", "--inbox", r.inbox, "--run", r.run, "--once", "--babysitter", r.babysitter)
	require.Error(t, err)
	assert.Contains(t, out, "run:iterate says that it has completed, and the run's journal that it is waiting: does its process print what looks like an answer?")
	out, err = r.heartbeat("run", "status", "--inbox", r.inbox)
	require.NoError(t, err, out)
	assert.Contains(t, out, "1 iteration;")
}

// rested has the run and its inbox be as they are for two minutes.
func (r *runRig) rested() time.Time {
	r.t.Helper()
	then := time.Now().Add(-2 * time.Minute)
	kept, err := filepath.Glob(r.ledger() + ".result-*")
	require.NoError(r.t, err)
	state, err := filepath.Glob(filepath.Join(filepath.Dir(r.inbox), inbox.JournalName)) // nothing has been in some inboxes
	require.NoError(r.t, err)
	for _, path := range append(slices.Concat(kept, state), r.ledger(), filepath.Join(r.run, "journal")) {
		require.NoError(r.t, os.Chtimes(path, then, then))
	}
	return then
}

// drains has a session work off the inbox that nothing has told of the run.
func (r *runRig) drains() {
	r.t.Helper()
	a := &agent.Agent{
		Hook: []string{r.hook, "--inbox", r.inbox}, Env: append(os.Environ(), "CLAUDE_PID="), Answer: r.obey,
		Transcript: filepath.Join(r.t.TempDir(), "transcript.jsonl"),
	}
	require.NoError(r.t, a.Run(r.t.Context(), "begin"))
}

// Whatever it is that a run could go on with, a person hears of it where nobody takes its steps, in the same words
// everywhere, and no longer once somebody does.
func TestNobodyDrivesItOn(t *testing.T) {
	const one = `export async function process(inputs, ctx) { await ctx.task(agent, {q:'a'}); return 1; }`
	for name, c := range map[string]struct {
		process string
		bring   func(r *runRig)
	}{
		"its result was posted past the inbox": {one, func(r *runRig) {
			_, effect, _ := strings.Cut(r.step().Queued[0], "/")
			r.babysit("task:post", r.run, effect, "--status", "ok", "--value-inline", `1`, "--json")
		}},
		"its sleep is over": {`export async function process(inputs, ctx) {
  await ctx.sleepUntil('2100-01-01T00:00:00Z'); await ctx.task(agent, {q:'a'}); return 1; }`, func(r *runRig) {
			require.Empty(r.t, r.step().Queued)
			r.edit(func(l map[string]any) { l["wants"].([]any)[0].(map[string]any)["until"] = time.Now().Add(-time.Hour) })
		}},
		"its failure was looked at": {`export async function process(inputs, ctx) { throw new Error('broken'); }`, func(r *runRig) {
			r.step()
			r.drains()
		}},
		"it is completed, and nobody asked for its proof": {`export async function process(inputs, ctx) { return 1; }`, func(r *runRig) {
			r.step()
			r.drains()
		}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRunRig(t, c.process)
			look := r.look()
			c.bring(r)
			_, err := r.heartbeat("cancel", "--inbox", r.inbox, "--all")
			require.NoError(t, err)
			assert.Contains(t, look.Verb("status"), "the run r1 has been at work since ", "somebody may be about to")
			r.rested()
			want := stuck.Seen{Kind: "run-stuck", State: "run stuck", Says: "the run r1 needs a person since .*: it could go on, and nobody takes its steps: "}
			assert.Empty(t, look.Missing(want))
			out, err := r.heartbeat("orchestrate", "--once", "--run", r.run, "--inbox", r.inbox, "--babysitter", r.babysitter)
			require.NoError(t, err, out)
			r.rested()
			assert.True(t, look.Over(want), look.Verb("status"))
		})
	}
}

// Of two runs whose processes hang, each is known to be stuck, however little time their hook has for both.
func TestHookSharesItsTime(t *testing.T) {
	r := newRunRig(t, `export async function process(inputs, ctx) { return 1; }`)
	r.babysit("run:create", "--harness", "custom", "--process-id", "p", "--entry", "p.mjs#process", "--run-id", "r2", "--json")
	hangs := filepath.Join(r.dir, "hangs")
	require.NoError(t, os.WriteFile(hangs, []byte("#!/bin/sh\n[ \"$1\" = version ] && exec echo 0.0.187\nexec sleep 1000\n"), 0o700))
	var f hook.Flags
	require.NoError(t, f.Set().Parse([]string{"--inbox", r.inbox, "--run", r.run, "--run", filepath.Join(filepath.Dir(r.run), "r2"), "--babysitter", hangs}))
	box, err := inbox.Open(r.inbox, inbox.Options{})
	require.NoError(t, err)
	runs.Open(hook.Surroundings{
		Flags: &f, Box: box, Age: func() time.Duration { return 8*time.Minute - 3*time.Second },
		Note: t.Logf, Ask: func([]string) {}, Complain: func(err error) { t.Error(err) }, ComplainOnce: func(err error) { t.Log(err) },
	}).Step(t.Context())
	out, err := r.heartbeat("run", "status", "--inbox", r.inbox)
	require.NoError(t, err, out)
	assert.Equal(t, 2, strings.Count(out, "is stuck: "), out)
}

func (r *runRig) look() stuck.Look {
	return stuck.Look{Inbox: r.inbox, Project: r.dir, Scratch: filepath.Join(r.dir, "told"), Verb: func(verb string, args ...string) string {
		out, _ := r.heartbeat(append([]string{verb, "--inbox", r.inbox}, args...)...) // its status says that something is wrong
		return out
	}}
}

// What a run asks a person stands in the same words everywhere, until it is answered.
func TestWhatARunAsksIsToldEverywhere(t *testing.T) {
	r := newRunRig(t, `export async function process(inputs, ctx) {
  await ctx.breakpoint({question:'Ship it?'}); return await ctx.task(agent, {q:'a'}); }`)
	does := func(args ...string) {
		t.Helper()
		out, err := r.heartbeat(append(args, "--inbox", r.inbox, "--babysitter", r.babysitter)...)
		require.NoError(t, err, out)
	}
	question := r.step().Held[0].Effect
	asks := stuck.Seen{Kind: "breakpoint", State: "held", Says: `waits since .* for a person to answer "Ship it\?"`}
	assert.Empty(t, r.look().Missing(asks))
	does("breakpoint", "approve", question)
	assert.True(t, r.look().Over(asks))

	queued, err := os.ReadFile(r.inbox)
	require.NoError(t, err)
	effect := regexp.MustCompile(`"id":"r1/(\w+)"`).FindSubmatch(queued)[1]
	code, err := os.ReadFile(filepath.Join(r.dir, "p.mjs"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(r.dir, "p.mjs"), append(code, "// another\n"...), 0o600))
	out, err := r.heartbeat("result", string(effect), "--text", "by hand", "--inbox", r.inbox)
	require.NoError(t, err, out)
	_, err = r.heartbeat("orchestrate", "--once", "--run", r.run, "--inbox", r.inbox, "--babysitter", r.babysitter)
	require.Error(t, err, "its code has changed")
	changed := stuck.Seen{Kind: "run-code", State: "held", Says: "the run r1 rests since .*its code has to be accepted: it has changed in p.mjs"}
	assert.Empty(t, r.look().Missing(changed), "%s", r.look().Verb("status"))
	does("run", "accept-code", "r1")
	assert.True(t, r.look().Over(changed))
}

// How a run stands that needs nobody is seen everywhere, too, in the same words: what it waits for, since when, and when it
// goes on.
func TestARunThatGoesOnIsSeenEverywhere(t *testing.T) {
	r := newRunRig(t, `export async function process(inputs, ctx) {
  await ctx.parallel.all([() => ctx.task(agent, {q:'a'}), () => ctx.task(odd, {q:'x'})]);
  await ctx.sleepUntil('2100-01-01T12:00:00Z'); return 1; }`)
	look := r.look()
	r.step()
	assert.Empty(t, look.Unseen("r1", "at work", `has been at work since 20.*: it waits for 1 agent, 1 my-own-kind`))
	r.drive()
	assert.Equal(t, "run asleep", look.JSON("status").State)
	assert.Empty(t, look.Unseen("r1", "asleep", `has been asleep since 20.*, and goes on at 2100-01-01 \d`))
}

// That the end of a run drains its inbox is told by the hook that makes the run's last step.
func TestTheEndOfARunIsTold(t *testing.T) {
	r := newRunRig(t, `export async function process(inputs, ctx) { return await ctx.task(agent, {q:'a'}); }`)
	told := filepath.Join(r.dir, "told")
	tell := []string{"--notify-drained", "--notify", "cat >> " + told}
	out, err := r.heartbeat(append([]string{"notify", "--inbox", r.inbox}, tell...)...)
	require.NoError(t, err, out)
	r.drive(tell...)
	require.Eventually(t, func() bool {
		text, _ := os.ReadFile(told)
		return strings.Contains(string(text), `"what":"drained"`)
	}, 5*time.Minute, 10*time.Millisecond)
}
