package claude

import (
	"os"
	"strconv"
)

// PID is the client's process, as a hook's environment names it, or 0.
func PID() int {
	pid, err := strconv.Atoi(os.Getenv("CLAUDE_PID"))
	if err != nil || pid < 1 {
		return 0
	}
	return pid
}
