package watching

import (
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/require"

	"heartbeat/inbox"
	"heartbeat/internal/command"
	"heartbeat/internal/hook"
	"heartbeat/internal/host/guardian"
	"heartbeat/internal/launch"
	"heartbeat/internal/testing/pages"
	"heartbeat/internal/testing/script"
	"heartbeat/internal/watching/page"
)

// TestMain makes the test binary the commands where a test runs them.
func TestMain(m *testing.M) {
	inbox.TestOnlyTrustAll = os.Getenv("STRICT") == "" // scripts write state by hand
	script.Main(m, map[string]func(){
		"heartbeat-watch": Main, "heartbeat": command.Main, "heartbeat-stop": hook.Main,
		"heartbeat-launch": launch.Main, guardian.Name: launch.Main, // for the picture
	})
}

// TestScripts runs the scripts in testdata/script.
func TestScripts(t *testing.T) {
	testscript.Run(t, script.Params(func(*testscript.Env) error { return nil }))
}

func TestManPage(t *testing.T) {
	p := page.Page()
	require.NotNil(t, p.Flags.Lookup("help"))
	pages.CheckPages(t, p)
}
