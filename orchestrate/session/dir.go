package session

import (
	"errors"
	"fmt"
	"path/filepath"
)

// ErrNoHome says that nothing tells where the state files are.
var ErrNoHome = errors.New("HOME is not set")

// Dir is the absolute path of the directory that state files are in, found as the
// CLI finds it: the flag, $BABYSITTER_STATE_DIR, `state` in
// $BABYSITTER_GLOBAL_STATE_DIR, `.a5c/state` in the home directory. Relative paths
// are from the working directory. The error matches [ErrNoHome] where none of them is
// there.
func Dir(flag string, getenv func(string) string) (string, error) {
	if flag != "" {
		return filepath.Abs(flag)
	}
	if dir := getenv("BABYSITTER_STATE_DIR"); dir != "" {
		return filepath.Abs(dir)
	}
	if root := getenv("BABYSITTER_GLOBAL_STATE_DIR"); trim(root) != "" {
		return filepath.Abs(filepath.Join(root, "state"))
	}
	if home := getenv("HOME"); home != "" {
		return filepath.Abs(filepath.Join(home, ".a5c", "state"))
	}
	return "", fmt.Errorf("find the directory of session states: %w", ErrNoHome)
}
