package watch_test

import (
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"heartbeat/inbox"
	"heartbeat/internal/command"
	"heartbeat/internal/hook"
	"heartbeat/internal/launch"
	"heartbeat/internal/machine/guardian"
	"heartbeat/internal/testing/script"
)

// TestMain makes the test binary the commands where a test runs them.
func TestMain(m *testing.M) {
	inbox.TestOnlyTrustAll = os.Getenv("STRICT") == "" // scripts write state by hand
	script.Main(m, map[string]func(){
		"heartbeat": command.Main, "heartbeat-watch": command.Main, "heartbeat-stop": hook.Main,
		"heartbeat-launch": launch.Main, guardian.Name: launch.Main, // for the picture
	})
}

// TestScripts runs the scripts in testdata/script.
func TestScripts(t *testing.T) {
	testscript.Run(t, script.Params(func(*testscript.Env) error { return nil }))
}
