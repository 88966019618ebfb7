// Package build builds the commands for tests that need the real programs.
package build

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// Commands builds all commands, or those named, as they are shipped, without cgo, into a
// new temporary directory, which every user may enter. The caller removes it with remove.
func Commands(names ...string) (dir string, remove func(), err error) {
	if dir, err = os.MkdirTemp("", "heartbeat-commands-"); err != nil {
		return "", nil, fmt.Errorf("build the commands: %w", err)
	}
	remove = func() { _ = os.RemoveAll(dir) } // a temporary directory: what stays does no harm
	if len(names) == 0 {
		names = []string{"..."}
	}
	cmd := exec.Command("go", "build", "-buildvcs=false", "-o", dir+string(filepath.Separator))
	for _, name := range names {
		cmd.Args = append(cmd.Args, "heartbeat/cmd/"+name)
	}
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, buildErr := cmd.CombinedOutput(); buildErr != nil {
		err = fmt.Errorf("build the commands: %w: %s", buildErr, out)
	}
	if err = errors.Join(err, os.Chmod(dir, 0o755)); err != nil {
		remove()
		return "", nil, err
	}
	return dir, remove, nil
}
