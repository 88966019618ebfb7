package watch

import (
	"context"
	"path/filepath"
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
		go w.gather(ctx, func(m tea.Msg) { seen <- m }, New(root))
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
