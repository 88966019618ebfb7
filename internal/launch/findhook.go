package launch

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// findHook is the absolute path of the hook to wire: the one that a flag names, else
// the one beside this command, else that of PATH.
func findHook(given string) (string, error) {
	const name = "heartbeat-stop"
	candidates := []string{given}
	if given == "" {
		self, err := os.Executable()
		if err != nil {
			return "", fmt.Errorf("find this command's own path: %w", err)
		}
		candidates = []string{filepath.Join(filepath.Dir(self), name), name}
	}
	var failure error
	for _, c := range candidates {
		path, err := exec.LookPath(c)
		if err == nil {
			return filepath.Abs(path)
		}
		failure = err
	}
	return "", fmt.Errorf("find the hook: %w: install heartbeat-stop beside this command, or name it with --hook", failure)
}
