package settings

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// File is one of the settings files that the client merges.
type File struct {
	Path string
	// Managed says that it is an administrator's, which overrides all others.
	Managed bool
}

// Files returns the settings files of a session in a project, the weakest first,
// including those that do not exist. given are those on the client's command line,
// managed is the directory of the administrator's files, and the other arguments are
// those of [Path].
func Files(projectDir, homeDir, configDir, managed string, given ...string) []File {
	var all []File
	for _, scope := range []Scope{User, Project, Local} {
		path, err := Path(scope, projectDir, homeDir, configDir)
		if err == nil && !slices.Contains(all, File{Path: path}) {
			all = append(all, File{Path: path})
		}
	}
	for _, path := range given {
		all = append(all, File{Path: path})
	}
	for _, path := range managedFiles(managed) {
		all = append(all, File{Path: path, Managed: true})
	}
	return all
}

// FilesOf returns the settings files of a client with this environment, in this directory, the weakest first.
func FilesOf(environ []string, dir string) []File {
	var home, config string
	for _, kv := range environ {
		name, value, _ := strings.Cut(kv, "=")
		switch name {
		case "HOME":
			home = value
		case "CLAUDE_CONFIG_DIR":
			config = value
		}
	}
	return Files(dir, home, config, ManagedDir())
}

// ManagedDir is where the client looks for an administrator's settings on this
// system.
func ManagedDir() string {
	if runtime.GOOS == "darwin" {
		return "/Library/Application Support/ClaudeCode"
	}
	return "/etc/claude-code"
}

// managedFiles returns the administrator's file and its drop-ins.
func managedFiles(dir string) []string {
	files := []string{filepath.Join(dir, "managed-settings.json")}
	entries, err := os.ReadDir(filepath.Join(dir, "managed-settings.d"))
	if err != nil {
		return files // usually there is no such directory
	}
	for _, entry := range entries {
		if strings.HasSuffix(entry.Name(), ".json") && !strings.HasPrefix(entry.Name(), ".") {
			files = append(files, filepath.Join(dir, "managed-settings.d", entry.Name()))
		}
	}
	return files
}
