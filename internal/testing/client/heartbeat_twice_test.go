package client

import (
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/testing/model"
)

// The hook is wired in two settings files. The client runs a command once even
// when two files have it, so the two differ in an argument that changes nothing.
func twice(t *testing.T, how answers, flags ...string) *rig {
	t.Helper()
	r := newRig(t, how).install(flags...)
	r.installIn(r.projectSettings(), append(flags, "--settle", "251ms")...)
	r.Record("Stop")
	return r
}

// Both hooks run at each Stop. One of them delivers; the other must not take its
// own Stop for the answer.
func TestHeartbeatTwice(t *testing.T) {
	for name, how := range map[string]answers{"own replies": own, "the same reply": same} {
		t.Run(name, func(t *testing.T) {
			all := some(6)
			r := twice(t, how).add(all...)
			r.drain(minutes(t), prompt(1), r.options())
			fates := answeredOnce(all...)
			if name != "own replies" {
				fates = replied(fates, "Done.")
			}
			r.settled(fates...)
			assert.Equal(t, 7, r.turns())
			assert.Equal(t, 7, len(r.Events("Stop")))
		})
	}
}

// The same with identical entries.
func TestHeartbeatTwiceSameLine(t *testing.T) {
	const n = 6
	r := twice(t, same)
	for range n {
		r.add(verbatim(1))
	}
	r.drain(minutes(t), prompt(1), r.options())
	assert.Equal(t, n, r.arrivals(verbatim(1).text))
	require.Len(t, r.results(), n, r.state())
	assert.Nil(t, r.flying())
	assert.Empty(t, r.deadLetters())
}

// Both wait for an entry. One of them gets it; the other ends, so that the turn begins
// at once.
func TestHeartbeatTwiceWaiting(t *testing.T) {
	all := some(3)
	r := twice(t, own, "--mode", "persist", "--idle-interval", "1h")
	ctx := within(t)
	s := r.attended(ctx, r.options())
	for i, e := range all {
		r.waiting(ctx, 2)
		r.add(e)
		r.asked(ctx, e.tag, 1)
		_, err := r.WaitEvent(ctx, "Stop", i+2)
		require.NoError(t, err)
	}
	r.waiting(ctx, 2)
	r.settled(answeredOnce(all...)...)
	r.quit(ctx, s)
	r.hooksGone(ctx)
}

// lateHook starts the hook once the other hook of its Stop has delivered: at the
// nth Stop, the nth entry.
const lateHook = `#!/bin/sh
dir=$(dirname "$0")
echo >>"$dir/count"
n=$(wc -l <"$dir/count")
until test "$n" -gt "$ENTRIES" || grep -q "\"start_offset\":$((($n - 1) * $LENGTH))," "$dir/.in-flight"; do
	sleep 0.01
done
exec "$HOOK" --inbox "$dir/inbox.jsonl"
`

// The second hook may be late by any time: what the client writes late into its
// transcript, of the turns before, must not look like the answer.
func TestHeartbeatTwiceLate(t *testing.T) {
	word := entry{line: "user", text: "user"} // every line of a transcript has it
	for name, c := range map[string]struct {
		all []entry
		how answers
	}{
		"other lines":             {some(3, verbatim), own},
		"the same line and reply": {[]entry{verbatim(1), verbatim(1), verbatim(1)}, same},
		"a word that is anywhere": {[]entry{word, word, word}, counted},
	} {
		t.Run(name, func(t *testing.T) {
			n := len(c.all)
			r := newRig(t, c.how).install().add(c.all...)
			late := r.path("heartbeat-stop-late") // a name of ours, or each would wait for the other
			require.NoError(t, os.WriteFile(late, []byte(lateHook), 0o700))
			r.WriteProjectSettings(map[string]any{"hooks": map[string]any{"Stop": stopHook(late)}})
			r.Record("Stop")
			env := []string{"HOOK=" + r.stop, fmt.Sprintf("ENTRIES=%d", n), fmt.Sprintf("LENGTH=%d", len(c.all[0].line)+1)}
			r.drain(within(t), prompt(1), r.options(env...))
			var want, got []string
			for i, e := range c.all {
				want = append(want, c.how(e.tag, i+1).Text)
			}
			for _, l := range r.results() {
				got = append(got, l.Reply)
			}
			assert.Equal(t, want, got)
			assert.Equal(t, n+1, r.turns())
			assert.Equal(t, n+1, len(r.Events("Stop")))
			assert.Nil(t, r.flying())
			assert.Empty(t, r.deadLetters())
			if t.Failed() {
				t.Log(r.state())
			}
		})
	}
}

// counted is a reply that tells how often its tag was asked about.
func counted(_ string, nth int) model.Reply { return model.Text(fmt.Sprintf("answer %d", nth)) }
