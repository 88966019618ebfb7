package orchestrate_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestMain puts heartbeat and its hook on the PATH, and keeps the state of sessions out
// of the home directory.
func TestMain(m *testing.M) {
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "heartbeat-")
		if err == nil {
			defer func() { _ = os.RemoveAll(dir) }() // best effort: a temporary folder
			cmd := exec.Command("go", "build", "-buildvcs=false", "-o", dir+string(filepath.Separator), "heartbeat/cmd/heartbeat", "heartbeat/cmd/heartbeat-stop")
			cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
			cmd.Stderr = os.Stderr
			err = cmd.Run()
		}
		if err == nil {
			err = os.Setenv("BABYSITTER_STATE_DIR", filepath.Join(dir, "state"))
		}
		if err == nil {
			err = os.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return m.Run()
	}())
}
