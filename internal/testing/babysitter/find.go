// Package babysitter finds babysitter's command for tests.
package babysitter

import (
	"os"
	"os/exec"
	"path/filepath"
)

// Find returns babysitter's command, from HEARTBEAT_BABYSITTER or the PATH, and the
// module that processes import. ok is false if it is not installed.
func Find() (command, module string, ok bool) {
	command = os.Getenv("HEARTBEAT_BABYSITTER")
	if command == "" {
		command, _ = exec.LookPath("babysitter") // empty if there is none
	}
	dir, err := filepath.EvalSymlinks(command)
	if command == "" || err != nil {
		return "", "", false
	}
	for filepath.Base(dir) != "babysitter-sdk" {
		if dir = filepath.Dir(dir); dir == "/" || dir == "." {
			return "", "", false
		}
	}
	return command, filepath.Join(dir, "dist", "index.js"), true
}
