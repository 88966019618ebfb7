package orchestrate_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"heartbeat/internal/testing/build"
	"heartbeat/internal/testing/script"
)

// TestMain puts heartbeat and its hook on the PATH, and keeps the state of sessions out
// of the home directory.
func TestMain(m *testing.M) {
	os.Exit(func() int {
		dir, remove, err := build.Commands()
		if err == nil {
			defer remove()
			err = os.Setenv("BABYSITTER_STATE_DIR", filepath.Join(dir, "state"))
		}
		if err == nil {
			err = os.Setenv("XDG_STATE_HOME", filepath.Join(dir, "state home"))
		}
		if err == nil {
			err = os.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return script.Run(m)
	}())
}
