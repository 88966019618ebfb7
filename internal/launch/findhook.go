package launch

import (
	"fmt"
	"os/exec"
	"path/filepath"

	"heartbeat/internal/cli"
)

// findHook is the absolute path of the hook to wire: the one that a flag names, else
// the one beside this command, else that of PATH.
func findHook(given string) (string, error) {
	if given == "" {
		path, err := cli.Beside("heartbeat-stop")
		if err != nil {
			return "", fmt.Errorf("find the hook: %w, or name it with --hook", err)
		}
		return path, nil
	}
	path, err := exec.LookPath(given)
	if err != nil {
		return "", fmt.Errorf("find the hook: %w: install heartbeat-stop beside this command, or name it with --hook", err)
	}
	return filepath.Abs(path)
}
