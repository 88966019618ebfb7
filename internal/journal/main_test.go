package journal

import (
	"fmt"
	"os"
	"testing"

	"heartbeat/internal/testing/crash"
)

// TestMain runs the tests, or in a child the commit that they crash.
func TestMain(m *testing.M) {
	crash.Main(m, map[string]func() int{"commit": func() int {
		if err := commitToEach(os.Args[1]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return 0
	}})
}
