package codex

import "heartbeat/internal/host"

// Command is the client's program.
const Command = "codex"

// PID is the client's process: the nearest one above a hook's parent that is called codex,
// or 0. The client tells its hooks nothing about itself.
func PID(parent int) int {
	return host.Nearest(parent, func(pid int) bool { return host.Name(pid) == Command })
}

// MaxReason is how many bytes a Stop hook may block with. The client cuts a text of more
// than 2,500 tokens, which it takes for four bytes each, and names a file that has all of it.
const MaxReason = 9_000
