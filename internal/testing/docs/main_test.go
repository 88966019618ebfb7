// Package docs holds the documents to what the commands do.
package docs

import (
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
	build.Main(m, &bin)
}
