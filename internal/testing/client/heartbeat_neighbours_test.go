package client

import (
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/testing/model"
)

// neighbour is another Stop hook of the project. At the Stop whose number it is given it does
// what it is told, and at the others it approves. All its Stops take as long.
const neighbour = `#!/bin/sh
cat >/dev/null
n=$(($(cat "$0.stops" 2>/dev/null || echo 0) + 1))
echo $n >"$0.stops"
sleep "$1"
test "$n" -eq "$2" || exit 0
`

const (
	checkFailed = `echo '{"decision":"block","reason":"CHECK FAILED: fix it [f1]"}'`
	saysStop    = `echo '{"continue":false,"stopReason":"ENOUGH"}'`
)

// beside wires such a hook in the project's settings, besides what install wrote.
func (r *rig) beside(takes, at string, does ...string) {
	r.t.Helper()
	var hooks []any
	for i, what := range does {
		path := r.path("check" + string(rune('a'+i)))
		require.NoError(r.t, os.WriteFile(path, []byte(neighbour+what+"\n"), 0o700))
		hooks = append(hooks, map[string]any{"type": "command", "command": path + " " + takes + " " + at})
	}
	r.WriteProjectSettings(map[string]any{"hooks": map[string]any{"Stop": []any{map[string]any{"hooks": hooks}}}})
}

// askedInOrder are the tags that the model was asked about, without those of judges.
func (r *rig) askedInOrder() (all []string) {
	for _, request := range r.Model.MainRequests() {
		if !judges(request) {
			all = append(all, lastTag(request))
		}
	}
	return all
}

// A hook of the project has the turn of an entry go on. What that turn comes to is the
// entry's answer, and only then is the next one delivered.
func TestHeartbeatBesideACheckThatFails(t *testing.T) {
	for name, c := range map[string]struct {
		takes string
		does  []string
	}{
		"at once":              {"0", []string{checkFailed}},
		"later than this hook": {"1.5", []string{checkFailed}},
		"by its status":        {"0.2", []string{"echo 'CHECK FAILED: fix it [f1]' >&2; exit 2"}},
		"by context":           {"0.2", []string{`echo '{"hookSpecificOutput":{"hookEventName":"Stop","additionalContext":"CHECK FAILED [f1]"}}'`}},
		"beside one that dies": {"0.3", []string{checkFailed, "kill -9 $$", "exit 1"}},
	} {
		t.Run(name, func(t *testing.T) {
			all := some(3)
			r := newRig(t, own).install().add(all...)
			r.beside(c.takes, "2", c.does...)
			r.drain(within(t), prompt(1), r.options())
			fates := answeredOnce(all...)
			fates[0].reply = ownReply("[f1]")
			r.settled(fates...)
			assert.Equal(t, []string{"[p1]", all[0].tag, "[f1]", all[1].tag, all[2].tag}, r.askedInOrder())
			assert.NotContains(t, r.run("", "log"), "contested")
			if t.Failed() {
				t.Log(r.state())
			}
		})
	}
}

// Before anything is in flight the turn is a person's, and it is not over either.
func TestHeartbeatBesideACheckOfAnotherTurn(t *testing.T) {
	all := some(1)
	r := newRig(t, own).install().add(all...)
	r.beside("0.2", "1", checkFailed)
	r.drain(within(t), prompt(1), r.options())
	r.settled(answeredOnce(all...)...)
	assert.Equal(t, []string{"[p1]", "[f1]", all[0].tag}, r.askedInOrder())
}

// A hook that ends the session ends the turn of the entry; the next entry is another
// session's.
func TestHeartbeatBesideAHookThatEndsTheSession(t *testing.T) {
	all := some(2)
	r := newRig(t, own).install().add(all...)
	r.beside("0.3", "2", saysStop)
	r.drain(within(t), prompt(1), r.options())
	r.logged(answeredOnce(all[0])...)
	assert.Nil(t, r.flying())
	assert.Equal(t, []string{"[p1]", all[0].tag}, r.askedInOrder())
	r.drain(within(t), prompt(2), r.options())
	r.settled(answeredOnce(all...)...)
}

// judges reports whether a request is one of a hook that asks a model.
func judges(r model.Request) bool { return strings.Contains(string(r.Body), `"StructuredOutput"`) }

// A model that judges the turn is waited for, for as long as the wiring says. What it says
// later makes the answer contested.
func TestHeartbeatBesideAJudge(t *testing.T) {
	Find(t)
	for name, c := range map[string]struct {
		unseen string
		late   bool
	}{"in time": {unhurried(t, 5*time.Second, commands).String(), false}, "too late": {"0s", true}} {
		t.Run(name, func(t *testing.T) {
			ctx, all := minutes(t), some(2)
			var asked atomic.Int32
			var r *rig
			r = newRigWith(t, func(q model.Request) model.Reply {
				switch {
				case !judges(q):
					return own(lastTag(q), 1)
				case strings.Contains(string(q.Body), all[0].tag) && !strings.Contains(string(q.Body), "[f1]") && asked.Add(1) == 1:
					for answered := false; c.late && !answered && ctx.Err() == nil; time.Sleep(poll) {
						_, err := os.Stat(r.path(".results.jsonl"))
						answered = err == nil
					}
					return model.Tool("StructuredOutput", map[string]any{"ok": false, "reason": "NOT DONE [f1]"}).After(time.Second)
				}
				return model.Tool("StructuredOutput", map[string]any{"ok": true})
			}).install("--gate-unseen", c.unseen).add(all...)
			r.WriteProjectSettings(map[string]any{"hooks": map[string]any{"Stop": []any{map[string]any{"hooks": []any{
				map[string]any{"type": "agent", "prompt": "Is it done? $ARGUMENTS"},
			}}}}})
			r.drain(ctx, prompt(1), r.options())
			events, err := os.ReadFile(r.path(".events.jsonl"))
			require.NoError(t, err)
			assert.Equal(t, c.late, strings.Contains(string(events), `"event":"contested"`), string(events))
			require.Len(t, r.results(), 2)
			if c.late {
				assert.Contains(t, string(events), "NOT DONE")
			} else {
				assert.Equal(t, []string{"[p1]", all[0].tag, "[f1]", all[1].tag}, r.askedInOrder())
				assert.Equal(t, ownReply("[f1]"), r.results()[0].Reply)
			}
		})
	}
}

// At a terminal the hook in the background waits for the client's own word that the Stop is
// over.
func TestHeartbeatRewakeBesideACheckThatFails(t *testing.T) {
	ctx := minutes(t)
	r := newRig(t, own)
	r.install("--rewake")
	r.beside("0.4", "2", checkFailed)
	s := r.attended(ctx, r.options())
	r.until(ctx, "it waits", func() bool { return len(r.hooks()) == 1 })
	all := some(2)
	r.add(all...)
	r.answered(ctx, 2)
	fates := answeredOnce(all...)
	fates[0].reply = ownReply("[f1]")
	r.settled(fates...)
	assert.Equal(t, []string{"[p1]", all[0].tag, "[f1]", all[1].tag}, r.askedInOrder())
	r.quit(ctx, s)
}
