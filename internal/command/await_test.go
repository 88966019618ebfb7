package command

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/inbox"
)

// The outcome was found, and the signal comes before the process has ended: with
// its default action the test's own process would die of it.
func TestSignalOnTheWayOut(t *testing.T) {
	ctx, cancel := endOnSignal(t.Context())
	cancel()
	require.NoError(t, syscall.Kill(syscall.Getpid(), syscall.SIGTERM))
	assert.ErrorIs(t, context.Cause(ctx), context.Canceled)
}

// TestWhoWaitsIsTold why nothing moves, again and again, until the waiting is over.
func TestWhoWaitsIsTold(t *testing.T) {
	path := filepath.Join(t.TempDir(), "inbox.jsonl")
	require.NoError(t, os.WriteFile(path, []byte("one\n"), 0o600))
	box, err := inbox.Open(path, inbox.Options{})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	tick, said, over := make(chan time.Time), make(chan string), make(chan struct{})
	go func() {
		tellWhy(ctx, tick, box, func(format string, args ...any) { said <- fmt.Sprintf(format, args...) })
		close(over)
	}()
	for range 2 {
		tick <- time.Now()
		assert.Equal(t, "still waiting: 1 entry waits, and no session has ever asked: start one, and see heartbeat doctor if it does not ask", <-said)
	}
	cancel()
	<-over
}
