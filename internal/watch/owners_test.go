package watch_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Root tells about the inboxes of two users, though it becomes each of them for good.
func TestRootTellsOfEachOwner(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root becomes another user")
	}
	root := two(t)
	require.NoError(t, os.Chmod(filepath.Dir(root), 0o755))
	for i, name := range []string{"ci", "mail"} {
		dir := filepath.Join(root, name)
		require.NoError(t, filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
			require.NoError(t, err)
			return os.Chown(path, 1001+i, 1001+i)
		}))
		out, err := exec.Command("heartbeat", "pause", "--inbox", filepath.Join(dir, "inbox.jsonl")).CombinedOutput()
		require.NoError(t, err, string(out))
	}
	out, err := exec.Command("heartbeat", "watch", "--once", "--notify", "cat >/dev/null", root).CombinedOutput()
	require.NoError(t, err, string(out))
	for _, name := range []string{"ci", "mail"} {
		assert.Contains(t, string(out), "told about "+filepath.Join(root, name, "inbox.jsonl")+": ")
	}
}
