// Package babysittertest finds babysitter's command for tests.
package babysitter

import (
	"os"
	"os/exec"
	"path/filepath"
)

// Find is the command of babysitter, which HEARTBEAT_BABYSITTER names where it is not
// on the PATH, and the module that processes import; ok is false where it is not
// installed.
func Find() (command, module string, ok bool) {
	command = os.Getenv("HEARTBEAT_BABYSITTER")
	if command == "" {
		command, _ = exec.LookPath("babysitter") // empty without one
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
