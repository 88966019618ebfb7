// Package claude holds what heartbeat knows about Claude Code: what hooks read on stdin and may print, and what
// transcripts show. It knows nothing about queues. All behaviour was measured on release 2.1.329 unless a comment names
// another source.
package claude

import (
	"os"
	"slices"
	"strconv"
	"strings"

	_ "heartbeat/internal/platform" // stops the build where heartbeat does not run
)

// Command is the client's program. SessionVariable names the session to the hooks, commands and tool servers that the
// client starts.
const (
	Command         = "claude"
	SessionVariable = "CLAUDE_CODE_SESSION_ID"
)

// PID returns the client's process id from the hook's environment, or 0.
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

// CanBeWoken reports whether this hook's session outlives its turn. Under -p, or driven by a program, the client waits
// for hooks in the background and then ends.
func CanBeWoken() bool {
	return !strings.HasPrefix(os.Getenv("CLAUDE_CODE_ENTRYPOINT"), "sdk-")
}

// identity lists the variables that a session sets for what it starts. A client that has them takes itself for that
// session's child and writes no transcript.
var identity = []string{
	"CLAUDECODE", "AI_AGENT", SessionVariable, "CLAUDE_CODE_CHILD_SESSION", "CLAUDE_CODE_ENTRYPOINT",
	"CLAUDE_CODE_EXECPATH", "CLAUDE_CODE_MESSAGING_SOCKET", "CLAUDE_CODE_MESSAGING_TOKEN",
	"CLAUDE_CODE_CHILD_NOTES_DIR", "CLAUDE_CODE_SESSION_ATTENDED", "CLAUDE_CODE_SSE_PORT", "CLAUDE_PID",
	"CLAUDE_ENV_FILE", "CLAUDE_PROJECT_DIR",
}

// Identity returns the names in environ with which a new session would take itself for the child of another.
func Identity(environ []string) (names []string) {
	for _, kv := range environ {
		if name, _, _ := strings.Cut(kv, "="); slices.Contains(identity, name) {
			names = append(names, name)
		}
	}
	return names
}

// WithoutIdentity returns environ without the variables that [Identity] names.
func WithoutIdentity(environ []string) []string {
	return slices.DeleteFunc(slices.Clone(environ), func(kv string) bool { return Identity([]string{kv}) != nil })
}
