package worker_test

import (
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"heartbeat/internal/testing/crash"
	"heartbeat/internal/testing/long"
)

// TestAKillAtEveryWrite kills an agent before each call by which it changes a file, and amid
// each write, from its start until it holds nothing any more. It goes on when it runs again.
func TestAKillAtEveryWrite(t *testing.T) {
	t.Parallel()
	const most = 200 // more than there are
	for _, option := range []string{"", ",torn"} {
		for n := 1; n <= most; n += long.Rounds(29, 1) {
			name := "before call " + strconv.Itoa(n) + option
			t.Run(name, func(t *testing.T) {
				w := newWorld(t, 3*time.Second)
				w.send("a")
				a := w.start("one", []string{crash.EnvKillAt + "=" + strconv.Itoa(n) + option})
				w.eventually("its end, or an end of the work", func() bool {
					return a.isOver() || w.waiting() == 0 && w.known("a") != nil && len(a.held()) == 0
				}, a)
				if !a.isOver() {
					n = most // it makes no more calls
					a.kill()
				}
				b := a.again(w)
				w.send("b")
				w.settled(b, "a", "b")
				w.eventually("an empty ledger", func() bool { return len(b.held()) == 0 && b.backlog() == 0 }, b)
				w.repliesTo("a", w.known("a"))
				assert.ElementsMatch(t, []string{"a", "b"}, w.turns())
				assert.Equal(t, 1, w.known("a").Attempts)
				assert.Equal(t, w.known("a").Agent, w.lease("a").Agent)
				entries, err := filepath.Glob(filepath.Join(filepath.Dir(a.inbox), "*.tmp*"))
				assert.NoError(t, err)
				assert.Empty(t, entries, "what a kill has left")
			})
		}
	}
}

func (r *running) isOver() bool {
	select {
	case <-r.Done:
		return true
	default:
		return false
	}
}
