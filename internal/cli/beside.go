package cli

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// Beside returns the path of another of heartbeat's commands: the one in the running
// command's folder, so that both are of the same release, or else the one on PATH.
func Beside(name string) (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find this command's own path: %w", err)
	}
	path := filepath.Join(filepath.Dir(self), name)
	if _, err := exec.LookPath(path); err == nil {
		return path, nil
	}
	found, err := exec.LookPath(name)
	if err != nil {
		return "", fmt.Errorf("%s is neither in %s, beside this command, nor on PATH: install all of heartbeat's commands into one folder", name, filepath.Dir(self))
	}
	return filepath.Abs(found)
}
