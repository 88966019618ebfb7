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
	// Managed says that it is an administrator's: it has the last word.
	Managed bool
}

// Files are the settings files of a session in a project, the weakest first, also
// those that are not there. further are those given on the client's command line.
// The other arguments are those of [Path]; managed is the directory of the
// administrator's files.
func Files(projectDir, homeDir, configDir, managed string, further ...string) []File {
	var all []File
	for _, scope := range []Scope{User, Project, Local} {
		path, err := Path(scope, projectDir, homeDir, configDir)
		if err == nil && !slices.Contains(all, File{Path: path}) {
			all = append(all, File{Path: path})
		}
	}
	for _, path := range further {
		all = append(all, File{Path: path})
	}
	for _, path := range managedFiles(managed) {
		all = append(all, File{Path: path, Managed: true})
	}
	return all
}

// ManagedDir is where the client looks for an administrator's settings on this
// system.
func ManagedDir() string {
	if runtime.GOOS == "darwin" {
		return "/Library/Application Support/ClaudeCode"
	}
	return "/etc/claude-code"
}

// managedFiles are the file of an administrator and its drop-ins.
func managedFiles(dir string) []string {
	files := []string{filepath.Join(dir, "managed-settings.json")}
	entries, err := os.ReadDir(filepath.Join(dir, "managed-settings.d"))
	if err != nil {
		return files // mostly there is none
	}
	for _, entry := range entries {
		if strings.HasSuffix(entry.Name(), ".json") && !strings.HasPrefix(entry.Name(), ".") {
			files = append(files, filepath.Join(dir, "managed-settings.d", entry.Name()))
		}
	}
	return files
}
