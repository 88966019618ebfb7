package stuck

import (
	"cmp"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"

	"heartbeat/internal/see"
	"heartbeat/internal/testing/long"
)

// state is one in which nothing moves.
type state struct {
	name string
	in   map[wiring]Seen // what is to be told under each wiring that it occurs under
	// bring brings it about, and end ends it.
	bring, end func(r *rig)
}

func TestStuck(t *testing.T) {
	for _, s := range states() {
		t.Run(s.name, func(t *testing.T) {
			for _, w := range slices.Sorted(maps.Keys(s.in)) {
				t.Run(string(w), func(t *testing.T) {
					if w != slices.Min(slices.Collect(maps.Keys(s.in))) {
						long.Only(t, "each state is brought about under one wiring")
					}
					t.Parallel()
					r := newRig(t, w)
					s.bring(r)
					r.sees(s.in[w])
					t.Log(r.look().JSON("status").Why)
					s.end(r)
					r.isOver(s.in[w])
				})
			}
		})
	}
}

// elsewhere are the kinds that another test brings about.
var elsewhere = map[see.Kind]string{
	see.KindBreakpoint:  "orchestrate: TestWhatARunAsksIsToldEverywhere, with babysitter itself",
	see.KindCode:        "orchestrate: TestWhatARunAsksIsToldEverywhere, with babysitter itself",
	see.KindSessionDown: "internal/command: TestStuckIdleStates",
	see.KindUncounted:   "internal/command: TestStatusOfWhatIsNotCounted",
}

// Each row of the table of troubles, which docs/operate.md lists, is brought about.
func TestEachRowIsBroughtAbout(t *testing.T) {
	brought := map[string]bool{}
	for _, s := range states() {
		for _, seen := range s.in {
			brought[cmp.Or(seen.Kind, seen.State)] = true
		}
	}
	for _, row := range see.Rows {
		assert.NotEqual(t, brought[string(row.Kind)], elsewhere[row.Kind] != "", "%s: %s", row.Kind, elsewhere[row.Kind])
	}
}

// all is the same under each of these wirings.
func all(s Seen, wirings ...wiring) map[wiring]Seen {
	in := map[wiring]Seen{}
	for _, w := range wirings {
		in[w] = s
	}
	return in
}
