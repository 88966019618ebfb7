package screen

import (
	"strings"

	"heartbeat/internal/screen"
)

// LastWords is why a session under `codex exec` gave up, in one line: the last error that it
// printed, behind which it counts its tokens, or the last line.
func LastWords(text string) string {
	rows := strings.Split(strings.TrimSpace(text), "\n")
	if at := lastOf(rows, func(row string) bool { return strings.HasPrefix(row, "ERROR: ") }); at >= 0 {
		return strings.TrimPrefix(rows[at], "ERROR: ")
	}
	return screen.LastLine(text)
}
