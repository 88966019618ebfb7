package watch

import (
	"context"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/fsnotify/fsnotify"
	"github.com/stretchr/testify/assert"
)

// When the kernel has dropped events, all inboxes are looked at as soon as after an event. The next poll could be half a
// minute away.
func TestLostEventsAreLookedForAtOnce(t *testing.T) {
	root := t.TempDir()
	write(t, filepath.Join(root, "a", "inbox.jsonl"), "first\n")
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		lost, seen := make(chan error), make(chan tea.Msg)
		w := &watch{all: &fsnotify.Watcher{Errors: lost}} // its other channel stays silent
		go w.gather(ctx, func(m tea.Msg) { seen <- m }, New(root), &atomic.Int64{})
		queued := func() int64 { // in the next picture that is sent
			var b Board
			for len(b.Picture.Inboxes) == 0 {
				(<-seen).(update)(&b)
			}
			return b.Picture.Inboxes[0].Facts.Backlog.Entries
		}
		assert.EqualValues(t, 1, queued())

		write(t, filepath.Join(root, "a", "inbox.jsonl"), "first\nsecond\n")
		began := time.Now()
		lost <- fsnotify.ErrEventOverflow
		assert.EqualValues(t, 2, queued())
		assert.Less(t, time.Since(began), pollEvery, "it waited for the poll")
	})
}

// A frame that time changes is drawn each second, so that its ages are right. What shows minutes alone is drawn now and
// then: to draw it is most of what a view of many inboxes costs in which nothing happens.
func TestFramesAreDrawnWhileTheyChange(t *testing.T) {
	root, ageless := t.TempDir(), t.TempDir()
	write(t, filepath.Join(root, "a", "inbox.jsonl"), `{"id":"first","prompt":"first","sent_at":"2000-01-01T00:00:00Z"}`+"\n") // where synctest begins
	write(t, filepath.Join(ageless, "a", "inbox.jsonl"), "")
	frames := func(t *testing.T, root string) (drawn int, d *Board) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		sent := make(chan tea.Msg)
		send := func(m tea.Msg) {
			select {
			case sent <- m:
			case <-ctx.Done():
			}
		}
		d = &Board{Width: 80, Height: 24}
		go (&watch{all: &fsnotify.Watcher{}}).gather(ctx, send, New(root), &d.alike)
		for end := time.After(50 * time.Second); ; {
			select {
			case m := <-sent:
				d.Update(m)
				d.View()
				drawn++
			case <-end:
				return drawn, d
			}
		}
	}
	synctest.Test(t, func(t *testing.T) {
		drawn, _ := frames(t, root)
		assert.GreaterOrEqual(t, drawn, 49, "an entry waits for seconds")
	})
	synctest.Test(t, func(t *testing.T) {
		drawn, d := frames(t, ageless)
		assert.LessOrEqual(t, drawn, 12)
		d.say(true, "something is new")
		d.View()
		assert.EqualValues(t, 1, d.alike.Load(), "the next tick is drawn")
	})
}
