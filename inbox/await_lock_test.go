package inbox_test

import (
	"context"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"heartbeat/inbox"
	"heartbeat/inbox/outcomes"
)

// TestAwaitOutlastsALock waits for a scheduled entry that comes due while somebody holds the lock
// for longer than LockWait.
func TestAwaitOutlastsALock(t *testing.T) {
	var looks, ahead atomic.Int64
	box, err := inbox.Open(filepath.Join(t.TempDir(), "inbox.jsonl"), inbox.Options{
		LockWait: time.Millisecond,
		Now:      func() time.Time { looks.Add(1); return time.Now().Add(time.Duration(ahead.Load())) },
	})
	require.NoError(t, err)
	r, err := box.Append(context.Background(), inbox.Message{Text: "one", NotBefore: time.Now().Add(time.Hour)}, 0)
	require.NoError(t, err)
	tx, err := box.Begin(context.Background())
	require.NoError(t, err)
	ahead.Store(int64(2 * time.Hour))

	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		_, err := outcomes.Await(ctx, box, r, time.Millisecond)
		ended <- err
	}()
	before := looks.Load()
	require.Eventually(t, func() bool { return looks.Load() > before+100 }, 5*time.Minute, time.Millisecond)
	require.Empty(t, ended)
	require.NoError(t, tx.Close())
	require.Eventually(t, func() bool {
		_, err := os.Stat(box.Path())
		return err == nil
	}, 5*time.Minute, time.Millisecond, "the entry is moved to the inbox")
	cancel()
	require.ErrorIs(t, <-ended, context.Canceled)
}
