// Package docs holds the documents to what the commands do.
package docs

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"heartbeat/internal/testing/build"
)

// root is the folder that the documents are named from.
const root = "../../.."

// bin is a folder with the commands as they are shipped.
var bin string

func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == "claude" {
		os.Exit(claude(os.Args[1:]))
	}
	os.Exit(withCommands(m))
}

func withCommands(m *testing.M) int {
	dir, remove, err := build.Commands()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer remove()
	bin = dir
	return m.Run()
}
