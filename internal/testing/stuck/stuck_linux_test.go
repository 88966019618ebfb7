package stuck

import (
	"maps"
	"slices"
	"testing"

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

// all is the same under each of these wirings.
func all(s Seen, wirings ...wiring) map[wiring]Seen {
	in := map[wiring]Seen{}
	for _, w := range wirings {
		in[w] = s
	}
	return in
}
