package command

import (
	"context"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/inbox"
	"heartbeat/internal/claim"
	"heartbeat/internal/cli"
)

// A signal that comes while a launcher's sign is awaited ends the wait, and the verb says which signal that was.
func TestAttachingEndedBeforeItIsShown(t *testing.T) {
	box, err := inbox.Open(filepath.Join(t.TempDir(), "inbox.jsonl"), inbox.Options{})
	require.NoError(t, err)
	lock, err := claim.Take(box)
	require.NoError(t, err)
	defer func() { assert.NoError(t, lock.Release()) }()
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cli.EndedBy{Signal: syscall.SIGTERM})
	_, err = socketOwner(ctx, box)
	assert.ErrorIs(t, err, cli.EndedBy{Signal: syscall.SIGTERM})
}
