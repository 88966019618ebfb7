package settings

import (
	"errors"
	"fmt"
	"path/filepath"
)

// Scope is whose settings a file holds.
type Scope string

// The scopes of Claude Code's settings.
const (
	Project Scope = "project" // .claude/settings.json, shared by everybody who works on the project
	Local   Scope = "local"   // .claude/settings.local.json, one person's settings for the project
	User    Scope = "user"    // ~/.claude/settings.json, one person's settings for all projects
)

// LinesPath returns the file with Codex's hooks of a scope, of which there is none for Local: hooks.json in the project's
// .codex, or for User in the value of CODEX_HOME, which takes precedence, or in ~/.codex.
func LinesPath(scope Scope, projectDir, homeDir, codexHome string) (string, error) {
	switch {
	case scope == Local:
		return "", fmt.Errorf("a person's own hooks for one project are not known to Codex: --scope is %s or %s", Project, User)
	case scope == Project:
		return filepath.Join(projectDir, ".codex", "hooks.json"), nil
	case codexHome != "":
		return filepath.Join(codexHome, "hooks.json"), nil
	}
	return filepath.Join(homeDir, ".codex", "hooks.json"), nil
}

// Path returns the settings file of a scope. Project and Local need projectDir. User needs homeDir or configDir, the
// value of CLAUDE_CONFIG_DIR, which takes precedence.
func Path(scope Scope, projectDir, homeDir, configDir string) (string, error) {
	switch {
	case scope == User && configDir != "":
		return filepath.Join(configDir, "settings.json"), nil
	case scope == User && homeDir == "":
		return "", errors.New("user settings: no home directory given")
	case scope == User:
		return filepath.Join(homeDir, ".claude", "settings.json"), nil
	case scope != Project && scope != Local:
		return "", fmt.Errorf("scope %q is none of %s, %s, %s", scope, Project, Local, User)
	case projectDir == "":
		return "", fmt.Errorf("%s settings: no project directory given", scope)
	case scope == Local:
		return filepath.Join(projectDir, ".claude", "settings.local.json"), nil
	}
	return filepath.Join(projectDir, ".claude", "settings.json"), nil
}
