package client

import (
	"os"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// linter is a Stop hook of somebody else's, which blocks the second Stop.
const linter = `#!/bin/sh
dir=$(dirname "$0")
echo >>"$dir/linted"
test "$(wc -l <"$dir/linted")" -eq 2 || exit 0
echo '{"decision":"block","reason":"mend what the linter found [l1]"}'
`

// lostBy are the ways in which a hook's second decision is lost: it is killed after
// its commit, while it prints, or it prints into a full disk or a closed pipe. One
// that is killed behind its decision left no note of it, and the decision counts.
var lostBy = map[string]string{
	"killed before it printed": `
mkfifo "$dir/nowhere"
exec 3<&0 4<>"$dir/nowhere"
"$HOOK" --inbox "$dir/inbox.jsonl" --gate-timeout 0 --as "$FORM" <&3 >&4 &
until grep -q '"start_offset":'"$SECOND," "$dir/.in-flight"; do sleep 0.01; done
kill -9 $!
wait
exit 0
`,
	"stdout is full": `
exec "$HOOK" --inbox "$dir/inbox.jsonl" --gate-timeout 0 --as "$FORM" >/dev/full
`,
	"stdout is a closed pipe": `
mkfifo "$dir/nowhere"
exec 3<>"$dir/nowhere" 4>"$dir/nowhere"
exec "$HOOK" --inbox "$dir/inbox.jsonl" --gate-timeout 0 --as "$FORM" >&4 3>&- 4>&-
`,
	"killed behind its decision": `
"$HOOK" --inbox "$dir/inbox.jsonl" --gate-timeout 0 --as "$FORM"
sed -i '/"handed":true}$/d' "$dir/.inbox-journal"
kill -9 $$
`,
}

// losesSecond begins such a hook. It waits for no other one, as where the other one is
// slower, or not known of.
const losesSecond = `#!/bin/sh
dir=$(dirname "$0")
echo >>"$dir/stops"
test "$(wc -l <"$dir/stops")" -eq 2 ||
	exec "$HOOK" --inbox "$dir/inbox.jsonl" --gate-timeout 0 --as "$FORM" --signal-file "$dir/signal"
`

// Two hooks are wired. The turn goes on because of the other one, under the same
// prompt, and its end answers no entry that the model never saw.
func TestHeartbeatLostBesideAnother(t *testing.T) {
	for _, c := range []struct {
		by, form string
		second   func(int) entry
	}{
		{"killed before it printed", "reason", large}, // a short one fits into a pipe that nobody reads
		{"stdout is full", "reason", quoted},
		{"stdout is full", "context", quoted},
		{"stdout is a closed pipe", "reason", quoted},
		{"killed behind its decision", "reason", quoted},
		{"killed behind its decision", "context", quoted},
	} {
		t.Run(c.by+" as "+c.form, func(t *testing.T) {
			all := []entry{verbatim(1), c.second(2), verbatim(3)}
			r := newRig(t, own).install().add(all...)
			hook, other := r.path("hook"), r.path("linter")
			require.NoError(t, os.WriteFile(hook, []byte(losesSecond+lostBy[c.by]), 0o700))
			require.NoError(t, os.WriteFile(other, []byte(linter), 0o700))
			turns, linted := 5, 1
			if c.by == "killed behind its decision" {
				other, turns, linted = "true", 4, 0
			}
			r.edit(func(settings map[string]any) {
				settings["hooks"].(map[string]any)["Stop"] = append(stopHook(hook), stopHook(other)...)
			})
			o := r.options("HOOK="+r.stop, "FORM="+c.form, "SECOND="+strconv.Itoa(len(all[0].line)+1))
			r.drain(minutes(t), prompt(1), o)
			r.settled(answeredOnce(all...)...)
			assert.Equal(t, linted, r.arrivals("[l1]"), "the linter was heard")
			assert.Equal(t, turns, r.turns())
		})
	}
}
