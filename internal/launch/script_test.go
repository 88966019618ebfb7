package launch_test

import (
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"heartbeat/internal/testing/script"
)

// TestScripts runs the scripts in testdata/script, with the commands of package
// script and two about the guardian of the session whose mark FILE contains:
//
//	guarded FILE   waits until it has started
//	nobody FILE    waits until it and everything with the mark are gone
func TestScripts(t *testing.T) {
	params := script.Params(func(env *testscript.Env) error {
		screens, err := filepath.Abs("../../testdata/screens/claude")
		env.Setenv("SCREENS", screens)
		return err
	})
	params.Cmds["guarded"] = func(ts *testscript.TestScript, _ bool, args []string) {
		mark := mark(ts, args[0])
		script.Poll(ts, "a guardian of "+args[0], func() bool { return guardianOf(mark) != 0 })
	}
	params.Cmds["nobody"] = func(ts *testscript.TestScript, _ bool, args []string) {
		mark := mark(ts, args[0])
		script.Poll(ts, "the end of "+args[0], func() bool {
			return guardianOf(mark) == 0 && len(processesWith("environ", mark)) == 0
		})
	}
	testscript.Run(t, params)
}
