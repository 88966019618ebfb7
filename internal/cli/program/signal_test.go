package program

import (
	"context"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The outcome was found, and the signal comes before the process has ended: with
// its default action the test's own process would die of it.
func TestSignalOnTheWayOut(t *testing.T) {
	ctx, cancel := UntilSignal(0)
	cancel()
	require.NoError(t, syscall.Kill(syscall.Getpid(), syscall.SIGTERM))
	assert.ErrorIs(t, context.Cause(ctx), context.Canceled)
}
