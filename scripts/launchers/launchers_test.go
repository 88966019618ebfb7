package launchers_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"heartbeat/internal/testing/build"
	"heartbeat/internal/testing/script"

	"github.com/rogpeppe/go-internal/testscript"
)

// bin is a folder for the PATH that holds the shipped commands, and this test binary as the
// client.
var bin string

func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == "claude" {
		os.Exit(client())
	}
	os.Exit(withCommands(m))
}

func withCommands(m *testing.M) int {
	dir, remove, err := build.Commands()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer remove()
	bin = dir
	self, err := os.Executable()
	if err == nil {
		err = os.Symlink(self, filepath.Join(bin, "claude"))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return script.Run(m)
}

// TestScripts runs the scripts in testdata/script. They call the launchers by name, and
// claude is a stand-in for the client.
func TestScripts(t *testing.T) {
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, script.Params(func(env *testscript.Env) error {
		env.Setenv("SCREENS", filepath.Join(here, "../../testdata/screens/claude"))
		env.Setenv("PATH", strings.Join([]string{bin, here, os.Getenv("PATH")}, string(filepath.ListSeparator)))
		env.Setenv("LAUNCHERS", here)
		env.Setenv("HEARTBEAT_INBOX", filepath.Join(env.WorkDir, "queue", "inbox.jsonl"))
		return nil
	}))
}
