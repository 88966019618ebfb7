package notify_test

import (
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"

	"heartbeat/inbox"
	"heartbeat/internal/notify"
)

// What happened until the end is told at the end, once, whoever pokes.
func TestBackground(t *testing.T) {
	r := newRig(t, lines(3)...)
	var mu sync.Mutex
	var notes []string
	note := func(text string) {
		mu.Lock()
		defer mu.Unlock()
		notes = append(notes, text)
	}
	b := notify.Start(r.box, r.o, note)
	r.deadLetter(inbox.ReasonOrphaned)
	var all sync.WaitGroup
	for range 4 {
		all.Go(b.Poke)
	}
	b.Say(notify.Says(r.box, "restarts", "heartbeat-launch has given up\nfor good"))
	all.Wait()
	b.Stop(context.Background())
	b.Poke() // a late one does no harm
	assert.ElementsMatch(t, []string{"failing", "dead-letter"}, whats(r.told()))
	assert.Empty(t, notes)

	// The next one says the same, and once an entry was answered that is news.
	again := func() []string {
		b := notify.Start(r.box, r.o, note)
		b.Say(notify.Says(r.box, "restarts", "heartbeat-launch has given up\nfor good"))
		b.Stop(context.Background())
		return whats(r.told())
	}
	assert.Empty(t, again())
	r.clock = r.clock.Add(1)
	r.deliver()
	r.in(func(tx *inbox.Tx) error { return tx.Acknowledge("done") })
	assert.Equal(t, []string{"failing"}, again())
	assert.Empty(t, again())

	// Without a command there is nobody.
	var nobody *notify.Background
	nobody.Poke()
	nobody.Say(notify.Occasion{})
	nobody.Stop(context.Background())
	assert.Nil(t, notify.Start(r.box, notify.Options{}, note))
}

// A command that hangs keeps nobody longer than he wants to wait.
func TestBackgroundStopsInTime(t *testing.T) {
	r := newRig(t, lines(2)...)
	r.o.Command = "sleep 600"
	b := notify.Start(r.box, r.o, func(string) {})
	r.deadLetter(inbox.ReasonOrphaned)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	b.Stop(ctx)
	r.o.Command = "cat >>'" + r.dir + "/told'"
	r.tell()
	assert.Equal(t, []string{"dead-letter"}, whats(r.told()), "it is left to the next one")
}
