package client

import (
	"os"
	"path/filepath"
	"testing"
)

// Variable names the environment variable that holds the client's absolute
// path.
const Variable = "HEARTBEAT_CLAUDE"

// Find returns the absolute path of the real client. It skips the test when
// HEARTBEAT_CLAUDE is unset, and fails it when the variable is set but of no
// use: a typing error must not pass as "not asked for".
func Find(t testing.TB) string {
	t.Helper()
	path := os.Getenv(Variable)
	if path == "" {
		t.Skip("this test runs the real Claude Code client; set " + Variable + " to the absolute path of its binary to run it")
	}
	if !filepath.IsAbs(path) {
		t.Fatalf("%s must be an absolute path, not %q", Variable, path)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatalf("%s: %v", Variable, err)
	}
	if info.IsDir() || info.Mode()&0o111 == 0 {
		t.Fatalf("%s: %s is not an executable file", Variable, path)
	}
	return path
}
