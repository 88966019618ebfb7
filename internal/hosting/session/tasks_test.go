package session_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A client that has its result but waits for tasks in the background is not taken for
// one that does not exit.
func TestWaitsForTasks(t *testing.T) {
	t.Parallel()
	fifo := filepath.Join(t.TempDir(), "fifo")
	require.NoError(t, syscall.Mkfifo(fifo, 0o600))
	r := newRig(t, `print:{"type":"system","subtype":"background_tasks_changed","tasks":[{"task_id":"b"}]} result wait:`+fifo+
		` print:{"type":"system","subtype":"background_tasks_changed","tasks":[]} print:{"type":"system","subtype":"init"}`)
	r.ExitTimeout = 8 * time.Second
	cmd := r.start()
	r.until("there is a result", func() bool { return r.state().Result != nil })
	time.Sleep(r.ExitTimeout * 5 / 4) // longer than it would be given without the task
	require.NoError(t, os.WriteFile(fifo, nil, 0o600))
	assert.NoError(t, cmd.Wait())
	assert.Equal(t, "completed", r.report()["status"])
	assert.Equal(t, "exit", r.report()["ended"])
	r.isClean()
}
