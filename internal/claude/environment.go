package claude

import (
	"slices"
	"strings"
)

// identity lists the variables that a session sets for what it starts. A client
// that finds them takes itself for that session's child and writes no transcript.
var identity = []string{
	"CLAUDECODE", "AI_AGENT", SessionVariable, "CLAUDE_CODE_CHILD_SESSION", "CLAUDE_CODE_ENTRYPOINT",
	"CLAUDE_CODE_EXECPATH", "CLAUDE_CODE_MESSAGING_SOCKET", "CLAUDE_CODE_MESSAGING_TOKEN",
	"CLAUDE_CODE_CHILD_NOTES_DIR", "CLAUDE_CODE_SESSION_ATTENDED", "CLAUDE_CODE_SSE_PORT", "CLAUDE_PID",
	"CLAUDE_ENV_FILE", "CLAUDE_PROJECT_DIR",
}

// Identity returns the names of the variables in environ that would make a new
// session take itself for the child of another one.
func Identity(environ []string) []string {
	var names []string
	for _, kv := range environ {
		if name, _, _ := strings.Cut(kv, "="); slices.Contains(identity, name) {
			names = append(names, name)
		}
	}
	return names
}

// WithoutIdentity returns environ without the variables that [Identity] names.
func WithoutIdentity(environ []string) []string {
	return slices.DeleteFunc(slices.Clone(environ), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return slices.Contains(identity, name)
	})
}
