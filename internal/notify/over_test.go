package notify_test

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/inbox"
	"heartbeat/internal/notify"
)

// said is what is told now: its kind, its trouble and its sentence.
func (r *rig) said() (all []string) {
	r.Helper()
	r.tell()
	for _, o := range r.told() {
		all = append(all, fmt.Sprintf("%v %v %v", o["what"], o["trouble"], o["text"]))
	}
	return all
}

func (r *rig) pause() {
	r.Helper()
	r.in(func(tx *inbox.Tx) error { _, err := tx.Holds().Pause("why", nil); return err })
}

func (r *rig) resume() { r.Helper(); r.in(func(tx *inbox.Tx) error { return tx.Holds().Resume() }) }

// What was told is told to be over, once; the same again is another one.
func TestOver(t *testing.T) {
	r := newRig(t, lines(1)...)
	r.pause()
	assert.Len(t, r.said(), 1)
	assert.Empty(t, r.said())
	r.resume()
	over := r.said()
	require.Len(t, over, 1)
	assert.Regexp(t, "^over paused over: .*: delivery is paused since .* \\(why\\)", over[0])
	assert.Empty(t, r.said())
	r.clock = r.clock.Add(time.Minute)
	r.pause()
	assert.Len(t, r.said(), 1)
}

// What a person never heard of is not told to be over. If the command fails at the end, that is
// told once it works.
func TestOverAndTheCommandFails(t *testing.T) {
	r := newRig(t, lines(1)...)
	works := r.o.Command
	fails := func() {
		r.o.Command = "exit 1"
		_, err := notify.Tell(t.Context(), r.box, r.o)
		require.Error(t, err)
		r.o.Command = works
		r.clock = r.clock.Add(time.Minute)
	}
	r.pause()
	fails()
	r.resume()
	assert.Empty(t, r.said())

	r.pause()
	assert.Len(t, r.said(), 1)
	r.resume()
	fails()
	over := r.said()
	require.Len(t, over, 1)
	assert.Contains(t, over[0], "over paused over: ")
	assert.Empty(t, r.said())
}

// A person who is asked, and does nothing, is reminded: after hours, then daily.
func TestReminded(t *testing.T) {
	r := newRig(t, lines(1)...)
	r.deliver()
	r.in(func(tx *inbox.Tx) error { return tx.In("s").Start(os.Getpid(), nil) })
	r.in(func(tx *inbox.Tx) error { return tx.In("s").Ask("permission_prompt", "may I?") })
	var after []time.Duration
	for range 60 {
		for _, text := range r.said() {
			after = append(after, r.clock.Sub(noon))
			if len(after) > 1 {
				assert.Contains(t, text, "question question still: ")
			}
		}
		r.clock = r.clock.Add(time.Hour)
	}
	assert.Equal(t, []time.Duration{0, 4 * time.Hour, 28 * time.Hour, 52 * time.Hour}, after)
	r.in(func(tx *inbox.Tx) error { tx.In("s").StopAsking(); return nil })
	over := r.said()
	require.Len(t, over, 1)
	assert.NotContains(t, over[0], "still: ")
}
