package claude

import (
	"os"
	"strconv"
	"strings"
)

// PID is the client's process, as a hook's environment names it, or 0.
func PID() int {
	pid, err := strconv.Atoi(os.Getenv("CLAUDE_PID"))
	if err != nil || pid < 1 {
		return 0
	}
	return pid
}

// IsAround reports whether a client started this process, or one that started it.
func IsAround() bool {
	for _, name := range []string{"CLAUDECODE", "CLAUDE_PID", "CLAUDE_CODE_SESSION_ID"} {
		if os.Getenv(name) != "" {
			return true
		}
	}
	return false
}

// CanBeWoken reports whether the session around a hook goes on when its turn
// ends. Under -p, and where a program drives the client, it does not: the client
// would wait for a hook in the background, and end.
func CanBeWoken() bool {
	return !strings.HasPrefix(os.Getenv("CLAUDE_CODE_ENTRYPOINT"), "sdk-")
}
