package babysitter

import (
	"os"
	"slices"
	"strings"
)

// telltales are the variables by which the CLI takes itself for a part of some other
// harness, session or folder. A process that is started in such a session inherits them,
// and they have nothing to do with the run.
var telltales = []string{
	"BABYSITTER_EXTENSION_PATH", "BABYSITTER_GLOBAL_STATE_DIR", "BABYSITTER_RUNS_DIR", "BABYSITTER_SESSION_ID", "BABYSITTER_STATE_DIR",
	"CLAUDE_ENV_FILE", "CLAUDE_PLUGIN_DATA", "CLAUDE_PLUGIN_ROOT",
	"CODEX_HOME", "CODEX_PLUGIN_ROOT", "CODEX_SESSION_ID", "CODEX_THREAD_ID",
	"COPILOT_ENV_FILE", "COPILOT_GITHUB_TOKEN", "COPILOT_HOME", "COPILOT_PLUGIN_ROOT",
	"CURSOR_PLUGIN_ROOT", "CURSOR_PROJECT_DIR", "CURSOR_VERSION",
	"GEMINI_CWD", "GEMINI_EXTENSION_PATH", "GEMINI_PROJECT_DIR", "GEMINI_SESSION_ID",
	"OMP_PLUGIN_ROOT", "OMP_SESSION_ID",
	"OPENCODE_CONFIG", "OPENCODE_PLUGIN_ROOT", "OPENCODE_SESSION_ID",
	"PI_PLUGIN_ROOT", "PI_SESSION_ID",
	// With the first the CLI loads process modules in another way; with the second node
	// talks to its parent over a descriptor that it did not get.
	"VITEST", "NODE_CHANNEL_FD",
}

func (c *CLI) environment() []string {
	return slices.DeleteFunc(append(os.Environ(), c.Env...), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return slices.Contains(telltales, name)
	})
}
