package settings

import (
	"errors"
	"fmt"
	"path/filepath"
)

// Scope says whose settings file is meant.
type Scope string

// The scopes of Claude Code's settings.
const (
	Project Scope = "project" // .claude/settings.json, shared with everybody who works on the project
	Local   Scope = "local"   // .claude/settings.local.json, one person's own for the project
	User    Scope = "user"    // ~/.claude/settings.json, for all of a person's projects
)

// Path returns the settings file of a scope. projectDir counts for Project and Local only, homeDir and configDir for
// User only; configDir is the value of CLAUDE_CONFIG_DIR, "" when it is not set, and goes before homeDir. The
// directory that counts must be given.
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
