package notify

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/inbox"
)

// A person with many projects, each with its work/inbox.jsonl, is told which one it is.
func TestNameOfAnInbox(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "agent", "work")
	require.NoError(t, os.MkdirAll(dir, 0o700))
	box, err := inbox.Open(filepath.Join(dir, "inbox.jsonl"), inbox.Options{})
	require.NoError(t, err)
	assert.Equal(t, "agent/work/inbox.jsonl", name(box))
}
