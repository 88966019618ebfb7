package worker_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// TestEndedAmidATurn ends an agent in the midst of a turn: the entry is answered, if it has
// the time. What waits, and what was not answered, is another agent's at once.
func TestEndedAmidATurn(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		args  []string
		late  bool
		turns []string
	}{
		"answered":   {nil, false, []string{"a", "b"}},
		"given back": {[]string{"--launch", "--drain-timeout=0"}, true, []string{"a", "a", "b"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, time.Minute) // longer than the test: nothing comes again by itself
			a := w.start("one", nil, append([]string{"--slots", "2"}, c.args...)...)
			a.hold()
			w.send("a", "b")
			w.eventually("a turn, and an entry that waits", func() bool { return len(w.turns()) == 1 && len(a.held()) == 2 }, a)
			a.term()
			if !c.late {
				w.eventually("that nothing more is delivered", func() bool {
					sign, _ := os.ReadFile(filepath.Join(filepath.Dir(a.inbox), ".launch-lock"))
					return strings.Contains(string(sign), "it ends once")
				}, a)
				a.open()
			}
			assert.Equal(t, 143, a.ended())
			assert.Contains(t, a.said(), "message b is given back: this agent ends")
			assert.Equal(t, c.late, strings.Contains(a.said(), "message a is given back: this agent ends"))
			if c.late {
				a.open()
			}
			b := w.start("two", nil)
			w.settled(b, "a", "b")
			assert.ElementsMatch(t, c.turns, w.turns())
			by := "one"
			if c.late {
				by = "two"
			}
			assert.Equal(t, by, w.known("a").Agent)
		})
	}
}
