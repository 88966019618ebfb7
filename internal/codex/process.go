package codex

import "heartbeat/internal/host"

// command is the client's program.
const command = "codex"

// maxAbove is how far above a hook the client is looked for: a shell and a wrapper may
// stand between.
const maxAbove = 4

// PID is the client's process: the nearest one above a hook's parent that is called codex,
// or 0. The client tells its hooks nothing about itself.
func PID(parent int) int {
	for range maxAbove {
		if parent <= 1 {
			return 0
		}
		if host.Name(parent) == command {
			return parent
		}
		parent = host.Parent(parent)
	}
	return 0
}

// MaxReason is how many bytes a Stop hook may block with. The client cuts a text of more
// than 2,500 tokens, which it takes for four bytes each, and names a file that has all of it.
const MaxReason = 9_000
