package doctor

import (
	"heartbeat/internal/claude/settings"
	"heartbeat/internal/disk"
)

// Limits for files that are read whole. The client's account file grows with every
// project, and a journal record contains a line.
const (
	maxSettings = settings.MaxFile
	maxAccount  = 256 << 20
	maxState    = 256 << 20
)

// readFile reads a user's file of at most limit bytes.
func readFile(path string, limit int64) ([]byte, error) { return disk.ReadFile(path, limit) }
