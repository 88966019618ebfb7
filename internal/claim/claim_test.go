package claim_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/inbox"
	"heartbeat/internal/claim"
)

// What has no --shared does not tell a person to say it.
func TestRightsThatOthersHave(t *testing.T) {
	dir := t.TempDir()
	box, err := inbox.Open(filepath.Join(dir, "inbox.jsonl"), inbox.Options{})
	require.NoError(t, err)
	if os.Geteuid() == 0 {
		require.NoError(t, os.Chown(dir, 65534, 65534))
	} else {
		require.NoError(t, os.Chmod(dir, 0o777)) //nolint:gosec // that is refused
	}
	for _, meant := range []string{"", ", or say so"} {
		err := claim.CheckRights(box, meant, func(string) {})
		require.ErrorContains(t, err, "instruct the agent and forge its state")
		assert.Regexp(t, `(work as that user|\(chmod go-w\))`+meant+"$", err.Error())
	}
}
