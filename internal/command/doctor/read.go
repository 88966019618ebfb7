package doctor

import (
	"heartbeat/internal/claude/settings"
	"heartbeat/internal/disk"
)

// Bounds on what is read whole. The client's account file grows with every
// project, and a journal record holds a line.
const (
	maxSettings = settings.MaxFile
	maxAccount  = 256 << 20
	maxState    = 256 << 20
)

// readFile reads a file of the user's, of at most limit bytes.
func readFile(path string, limit int64) ([]byte, error) { return disk.ReadFile(path, limit) }

// readState reads a file whose links the hook does not follow.
func readState(path string) ([]byte, error) { return disk.ReadState(path, maxState) }
