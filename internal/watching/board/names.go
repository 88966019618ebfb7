package board

import (
	"path/filepath"

	"heartbeat/internal/words"
)

// usual is an inbox's usual name, which says nothing.
const usual = "inbox.jsonl"

// Short is the short name of an inbox: its folder, and its own name if that is not the
// usual one. A folder that is called queue says as little.
func Short(path string) string {
	dir, name := filepath.Split(filepath.Clean(path))
	dir = filepath.Clean(dir)
	parent := filepath.Base(dir)
	if above := filepath.Base(filepath.Dir(dir)); (parent == "queue" || parent == "inbox" || parent == "work") && above != "/" && above != "." {
		parent = above + "/" + parent
	}
	if name != usual {
		parent += "/" + name
	}
	return words.Line(parent)
}
