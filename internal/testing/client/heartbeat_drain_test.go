package client

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/testing/model"
)

// same answers everything with the same word.
func same(string, int) model.Reply { return model.Text("Done.") }

// slow answers late.
func slow(how answers, delay time.Duration) answers {
	return func(tag string, nth int) model.Reply { return how(tag, nth).After(delay) }
}

// replied returns the fates of entries that all got the same reply.
func replied(fates []fate, reply string) []fate {
	for i := range fates {
		fates[i].reply = reply
	}
	return fates
}

// minutes is for sessions that are long by design.
func minutes(t *testing.T) context.Context { return ending(t, 2*patience) }

// One session drains a whole inbox. The environment leaves the cap on consecutive blocks
// at its default: what install wrote must lift it.
func TestHeartbeatDrain(t *testing.T) {
	for name, c := range map[string]struct {
		how   answers
		n     int
		flags []string
		same  bool
	}{
		"as it comes":                  {how: own, n: 30},
		"as context":                   {how: own, n: 30, flags: []string{"--as", "context"}},
		"a model of 50 ms":             {how: slow(own, 50*time.Millisecond), n: 30},
		"a model of 300 ms":            {how: slow(own, 300*time.Millisecond), n: 12},
		"the same reply":               {how: same, n: 30, same: true},
		"the same reply after 50 ms":   {how: slow(same, 50*time.Millisecond), n: 30, same: true},
		"the same reply after 300 ms":  {how: slow(same, 300*time.Millisecond), n: 12, same: true},
		"the same reply, as a context": {how: same, n: 12, same: true, flags: []string{"--as", "context"}},
	} {
		t.Run(name, func(t *testing.T) {
			all := some(c.n)
			r := newRig(t, c.how).install(c.flags...).add(all...)
			r.drain(minutes(t), prompt(1), r.options())
			fates := answeredOnce(all...)
			if c.same {
				fates = replied(fates, "Done.")
			}
			r.settled(fates...)
			assert.Equal(t, c.n+1, r.turns())
			assert.FileExists(t, r.signal)
		})
	}
}

// The same at a person's terminal, with the hook in the project's settings.
func TestHeartbeatDrainInteractive(t *testing.T) {
	for name, c := range map[string]struct {
		how  answers
		same bool
	}{"own replies": {own, false}, "the same reply": {same, true}} {
		t.Run(name, func(t *testing.T) {
			all := some(30)
			r := newRig(t, c.how).add(all...)
			r.installIn(r.projectSettings(), "--signal-file", r.signal)
			ctx := minutes(t)
			s := r.attended(ctx, Options{})
			r.until(ctx, "the stop is approved", r.approved)
			fates := answeredOnce(all...)
			if c.same {
				fates = replied(fates, "Done.")
			}
			r.settled(fates...)
			assert.Equal(t, 31, r.turns())
			r.quit(ctx, s)
		})
	}
}

// A launcher starts a fresh session after every few entries.
func TestHeartbeatMaxEntries(t *testing.T) {
	all := some(7)
	r := newRig(t, own).install("--max-entries", "3").add(all...)
	ctx := within(t)
	for i, n := range []int{3, 6, 7} {
		r.drain(ctx, prompt(i+1), r.options())
		require.Len(t, r.results(), n)
		require.Nil(t, r.flying())
	}
	r.settled(answeredOnce(all...)...)
	sessions := map[string]int{}
	for _, l := range r.results() {
		sessions[l.SessionID]++
	}
	assert.Len(t, sessions, 3)
}

// The same line several times is several entries, even if all answers are the same.
func TestHeartbeatSameLine(t *testing.T) {
	const n = 12
	r := newRig(t, same).install()
	for range n {
		r.add(verbatim(1))
	}
	r.drain(within(t), prompt(1), r.options())
	assert.Equal(t, n, r.arrivals(verbatim(1).text))
	require.Len(t, r.results(), n, r.state())
	for i, l := range r.results() {
		assert.Equal(t, i*(len(verbatim(1).line)+1), l.StartOffset)
	}
	assert.Nil(t, r.flying())
	assert.Empty(t, r.deadLetters())
}

// The content of a line does not matter: a megabyte arrives whole, and JSON that is not
// an envelope arrives unchanged.
func TestHeartbeatContents(t *testing.T) {
	for name, flags := range map[string][]string{"reason": nil, "context": {"--as", "context"}} {
		t.Run(name, func(t *testing.T) {
			all := []entry{object(1), large(2), quoted(3), large(4), object(5)}
			r := newRig(t, own).install(flags...).add(all...)
			r.drain(within(t), prompt(1), r.options())
			r.settled(answeredOnce(all...)...)
		})
	}
}
