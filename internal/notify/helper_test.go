package notify_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/inbox"
	"heartbeat/internal/notify"
)

// helper starts a helper, and returns what gives it an order and what ends it.
func (r *rig) helper(command string) (order func(format string, args ...any), end func() string) {
	r.Helper()
	in, write := io.Pipe()
	var out bytes.Buffer
	done := make(chan error, 1)
	go func() { done <- notify.Help(in, &out) }()
	order = func(format string, args ...any) {
		_, err := fmt.Fprintf(write, format+"\n", args...)
		require.NoError(r, err)
	}
	start, err := json.Marshal(map[string]any{"inbox": r.box.Path(), "command": command})
	require.NoError(r, err)
	order("%s", start)
	return order, func() string {
		require.NoError(r, write.Close())
		require.NoError(r, <-done)
		return out.String()
	}
}

// What happened until the end is told at the end, once.
func TestHelper(t *testing.T) {
	r := newRig(t, lines(3)...)
	r.clock = time.Now()
	const says = `{"Reason":"restarts","Sentence":"heartbeat-launch has given up\nfor good"}`
	order, end := r.helper(r.o.Command)
	r.deadLetter(inbox.ReasonOrphaned)
	order(says)
	assert.Empty(t, end())
	assert.ElementsMatch(t, []string{"failing", "dead-letter"}, whats(r.told()))

	// The next one says the same, and once an entry was answered that is news.
	again := func() []string {
		order, end := r.helper(r.o.Command)
		order(says)
		assert.Empty(t, end())
		return whats(r.told())
	}
	assert.Empty(t, again())
	r.clock = time.Now()
	r.deliver()
	r.in(func(tx *inbox.Tx) error { return tx.Acknowledge("done") })
	assert.Equal(t, []string{"failing"}, again())
	assert.Empty(t, again())
}

// A command that cannot tell is said, and what it was to tell is left to the next one.
func TestHelperWhoseCommandFails(t *testing.T) {
	r := newRig(t, lines(2)...)
	r.clock = time.Now()
	r.deadLetter(inbox.ReasonOrphaned)
	_, end := r.helper("exit 3")
	assert.Contains(t, end(), "exit status 3")
	r.clock = r.clock.Add(time.Minute)
	r.tell()
	assert.Equal(t, []string{"dead-letter"}, whats(r.told()))
}

// A helper whose keeper had nothing to do ends, and so does one that was given nonsense.
func TestHelperWithoutWork(t *testing.T) {
	for orders, want := range map[string]string{"": "", "hello": "from heartbeat-launch and heartbeat-host alone", "{}": "the path is empty"} {
		err := notify.Help(bytes.NewReader([]byte(orders)), io.Discard)
		if want == "" {
			assert.NoError(t, err, orders)
		} else {
			assert.ErrorContains(t, err, want, orders)
		}
	}
	helper, err := notify.StartHelper(notify.Options{}, nil) // without a command
	require.NoError(t, err)
	helper.Follow("")
	helper.Say(notify.Words{})
	helper.Stop(t.Context())
}
