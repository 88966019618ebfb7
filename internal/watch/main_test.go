package watch_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/command"
	"heartbeat/internal/hook"
	"heartbeat/internal/launch"
	"heartbeat/internal/machine"
	"heartbeat/internal/machine/guardian"
	"heartbeat/internal/testing/script"
)

// TestMain makes the test binary the commands where a test runs them.
func TestMain(m *testing.M) {
	machine.TestOnlyTrustAll = os.Getenv("STRICT") == "" // scripts write state by hand
	script.Main(m, map[string]func(){
		"heartbeat": command.Main, "heartbeat-watch": command.Main, "heartbeat-stop": hook.Main,
		"heartbeat-launch": launch.Main, guardian.Name: launch.Main, // for the picture
	})
}

// TestScripts runs the scripts in testdata/script.
func TestScripts(t *testing.T) {
	testscript.Run(t, script.Params(func(*testscript.Env) error { return nil }))
}

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
