package claude

import (
	"slices"
	"strings"
)

// identity are the variables by which a session started from inside another one
// takes itself for its child, and then skips writing its transcript.
var identity = []string{
	"CLAUDECODE", "AI_AGENT", "CLAUDE_CODE_SESSION_ID", "CLAUDE_CODE_CHILD_SESSION", "CLAUDE_CODE_ENTRYPOINT",
	"CLAUDE_CODE_EXECPATH", "CLAUDE_CODE_MESSAGING_SOCKET", "CLAUDE_CODE_MESSAGING_TOKEN",
	"CLAUDE_CODE_CHILD_NOTES_DIR", "CLAUDE_CODE_SESSION_ATTENDED", "CLAUDE_CODE_SSE_PORT", "CLAUDE_PID",
	"CLAUDE_ENV_FILE", "CLAUDE_PROJECT_DIR",
}

// Identity names the variables in an environment by which a session started from
// there would take itself for another one's child.
func Identity(environ []string) []string {
	var names []string
	for _, kv := range environ {
		if name, _, _ := strings.Cut(kv, "="); slices.Contains(identity, name) {
			names = append(names, name)
		}
	}
	return names
}

// WithoutIdentity is an environment for a session that is nobody's child.
func WithoutIdentity(environ []string) []string {
	return slices.DeleteFunc(slices.Clone(environ), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return slices.Contains(identity, name)
	})
}
