package orchestrate_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"heartbeat/inbox"
	"heartbeat/internal/disk"
	"heartbeat/internal/testing/crash"
	"heartbeat/orchestrate"
	"heartbeat/orchestrate/run"
)

// An entry about a run is not taken for made where its append has failed: the next step makes it.
func TestAppendFails(t *testing.T) {
	for _, name := range []string{"failed", "completed"} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), name)
			require.NoError(t, os.CopyFS(dir, os.DirFS(filepath.Join("run/testdata", name))))
			r, err := run.Open(dir)
			require.NoError(t, err)
			box, err := inbox.Open(filepath.Join(t.TempDir(), "inbox.jsonl"), inbox.Options{})
			require.NoError(t, err)
			b := &orchestrate.Bridge{Box: box, Run: r}
			stop := crash.Observe(t, func(op disk.Op) error {
				if op.Kind == disk.OpWrite && filepath.Base(op.Path) == ".inbox-journal" {
					return unix.ENOSPC
				}
				return nil
			})
			_, err = b.Step(t.Context())
			stop()
			require.ErrorIs(t, err, unix.ENOSPC)
			report, err := b.Step(t.Context())
			require.NoError(t, err)
			assert.Empty(t, report.Guard)
			require.Len(t, report.Queued, 1)
			assert.NotContains(t, report.Queued[0], "#2", "it counts as the first")
		})
	}
}
