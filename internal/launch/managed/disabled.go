package managed

import (
	"slices"
	"strings"

	"heartbeat/internal/claude/settings"
	"heartbeat/internal/disk"
	"heartbeat/internal/launch/terminal"
)

// disabledBy is the settings file that keeps the client from running hooks, "" for none.
// The last file that says anything about it counts.
func disabledBy(o terminal.Options, hook string) string {
	var home, config string
	for _, kv := range o.Env {
		name, value, _ := strings.Cut(kv, "=")
		switch name {
		case "HOME":
			home = value
		case "CLAUDE_CONFIG_DIR":
			config = value
		}
	}
	for _, f := range slices.Backward(settings.Files(o.Dir, home, config, settings.ManagedDir())) {
		text, err := disk.ReadFile(f.Path, settings.MaxFile)
		if err != nil {
			continue
		}
		content, err := settings.Look(text, hook)
		if on, set := content.Switches["disableAllHooks"]; err == nil && set {
			if on {
				return f.Path
			}
			return ""
		}
	}
	return ""
}
