package session

import (
	"errors"
	"path/filepath"
)

// Dir is the absolute path of the directory that state files are in, found as the
// CLI finds it: the flag, $BABYSITTER_STATE_DIR, `state` in
// $BABYSITTER_GLOBAL_STATE_DIR, `.a5c/state` in the home directory. Relative paths
// are from the working directory.
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
	return "", errors.New("find the directory of session states: HOME is not set: give --state-dir")
}
