// Package docs holds the documents to what the commands do.
package docs

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// root is the folder that the documents are named from.
const root = "../../.."

// bin is a folder with the commands as they are shipped.
var bin string

func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == "claude" {
		os.Exit(claude(os.Args[1:]))
	}
	os.Exit(withCommands(m))
}

func withCommands(m *testing.M) int {
	if err := build(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(bin)
	return m.Run()
}

func build() (err error) {
	if bin, err = os.MkdirTemp("", "heartbeat-docs-"); err != nil {
		return err
	}
	cmd := exec.Command("go", "build", "-buildvcs=false", "-o", bin+string(filepath.Separator), "heartbeat/cmd/...")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}
