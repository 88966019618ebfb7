package claude

import (
	"os"
	"strconv"
	"strings"
)

// Command is the client's program, and SessionVariable what it tells its hooks, commands and
// tool servers: which session they are of.
const (
	Command         = "claude"
	SessionVariable = "CLAUDE_CODE_SESSION_ID"
)

// PID is the client's process as the hook's environment names it, or 0.
func PID() int {
	pid, err := strconv.Atoi(os.Getenv("CLAUDE_PID"))
	if err != nil || pid < 1 {
		return 0
	}
	return pid
}

// IsParent reports whether a client started this process or one of its parents.
func IsParent() bool {
	for _, name := range []string{"CLAUDECODE", "CLAUDE_PID", SessionVariable} {
		if os.Getenv(name) != "" {
			return true
		}
	}
	return false
}

// CanBeWoken reports whether the session around this hook stays when its turn
// ends. Under -p, or driven by a program, it does not: the client waits for hooks
// in the background and then ends.
func CanBeWoken() bool {
	return !strings.HasPrefix(os.Getenv("CLAUDE_CODE_ENTRYPOINT"), "sdk-")
}
