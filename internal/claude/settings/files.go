package settings

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"heartbeat/internal/disk"
)

// Scope is whose settings a file holds.
type Scope string

// The scopes of Claude Code's settings.
const (
	Project Scope = "project" // .claude/settings.json, shared by everybody on the project
	Local   Scope = "local"   // .claude/settings.local.json, one person's settings for the project
	User    Scope = "user"    // ~/.claude/settings.json, one person's settings for all projects
)

// LinesPath returns the file with Codex's hooks of a scope: hooks.json in the project's .codex, or for User in
// codexHome (the value of CODEX_HOME), or else in ~/.codex. Codex has no Local scope.
func LinesPath(scope Scope, projectDir, homeDir, codexHome string) (string, error) {
	switch {
	case scope == Local:
		return "", fmt.Errorf("no hooks of one person for one project are known to Codex: --scope is %s or %s", Project, User)
	case scope == Project:
		return filepath.Join(projectDir, ".codex", "hooks.json"), nil
	case codexHome == "" && homeDir == "":
		return "", errors.New("a person's own hooks are in the home directory, and HOME is not set: set it, or CODEX_HOME")
	}
	return filepath.Join(cmp.Or(codexHome, filepath.Join(homeDir, ".codex")), "hooks.json"), nil
}

// Path returns the settings file of a scope. Project and Local need projectDir. User needs configDir, the value of
// CLAUDE_CONFIG_DIR, or else homeDir.
func Path(scope Scope, projectDir, homeDir, configDir string) (string, error) {
	switch {
	case scope == Project:
		return filepath.Join(projectDir, ".claude", "settings.json"), nil
	case scope == Local:
		return filepath.Join(projectDir, ".claude", "settings.local.json"), nil
	case configDir == "" && homeDir == "":
		return "", errors.New("a person's own settings are in the home directory, and HOME is not set: set it, or CLAUDE_CONFIG_DIR")
	}
	return filepath.Join(cmp.Or(configDir, filepath.Join(homeDir, ".claude")), "settings.json"), nil
}

// File is one of the settings files that the client merges.
type File struct {
	Path    string
	Managed bool // marks an administrator's file, which overrides all others
}

// Files returns the settings files of a session in a project, weakest first, including missing ones. given are the
// files on the client's command line, and managed is the directory of the administrator's files. The other arguments
// are those of [Path].
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
	all = append(all, File{Path: filepath.Join(managed, "managed-settings.json"), Managed: true})
	dropIns, _ := filepath.Glob(filepath.Join(managed, "managed-settings.d", "[^.]*.json")) // usually empty
	for _, path := range dropIns {
		all = append(all, File{Path: path, Managed: true})
	}
	return all
}

// FilesOf is [Files] for a client with this environment in this directory.
func FilesOf(environ []string, dir string, given ...string) []File {
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
	return Files(dir, home, config, ManagedDir(), given...)
}

// ManagedDir returns where the client looks for an administrator's settings on this system.
func ManagedDir() string {
	if runtime.GOOS == "darwin" {
		return "/Library/Application Support/ClaudeCode"
	}
	return "/etc/claude-code"
}

// Load returns what the client loads from the file, and whether the file exists. The error says why the client loads
// nothing from an existing file. command is that of [ReadContent].
func (f File) Load(command string) (content Content, there bool, err error) {
	text, err := disk.ReadFile(f.Path, MaxFile)
	if errors.Is(err, fs.ErrNotExist) {
		return Content{}, false, nil
	}
	if err == nil {
		content, err = ReadContent(text, command)
	}
	if err == nil && content.Lax > 0 {
		err = fmt.Errorf("line %d is no plain JSON (a comment, or a trailing comma): Claude Code loads nothing from such a file", content.Lax)
	} else if err == nil && content.Mistyped != nil && !f.Managed {
		err = fmt.Errorf("the client loads nothing from the file: %w", content.Mistyped)
	}
	if err != nil {
		return Content{}, true, err
	}
	return content, true, nil
}

// Loaded returns what the client loads from the file, empty if it can load nothing.
func (f File) Loaded() Content {
	content, _, _ := f.Load("")
	return content
}

// TakeFlag removes the flag --settings from the client's arguments, given without the program's name. It returns the
// flag's value, or "". The last of several flags counts, as it does for the client.
func TakeFlag(args []string) (rest []string, value string) {
	rest = make([]string, 0, len(args))
	for i := 0; i < len(args); i++ {
		joined, is := strings.CutPrefix(args[i], "--settings=")
		switch {
		case args[i] == "--":
			return append(rest, args[i:]...), value
		case is:
			value = joined
		case args[i] == "--settings" && i+1 < len(args):
			i++
			value = args[i]
		default:
			rest = append(rest, args[i])
		}
	}
	return rest, value
}

// ReadFlag reads the value of --settings as a client in dir does: a file name, or the JSON itself.
func ReadFlag(value, dir string) ([]byte, error) {
	switch {
	case value == "":
		return nil, nil
	case strings.HasPrefix(strings.TrimSpace(value), "{"):
		return []byte(value), nil
	case !filepath.IsAbs(value):
		value = filepath.Join(dir, value)
	}
	return disk.ReadGiven(value, MaxFile)
}

// Off is the member of a settings file that keeps the client from running hooks.
type Off struct{ Path, Member string }

const (
	disableAll  = "disableAllHooks"
	managedOnly = "allowManagedHooksOnly"
)

// String says what is wrong, and what to do.
func (o Off) String() string {
	return "hooks are disabled by " + o.Member + " in " + o.Path + ": " + o.Fix()
}

// Fix says what to do about it.
func (o Off) Fix() string {
	if o.Member == managedOnly {
		return "only those that are wired there run, so ask the administrator"
	}
	return "take it out"
}

// HooksOff returns what keeps the client from running a hook, or nil. The files are sorted weakest first, and the last
// file that has the switch counts. managed marks an administrator's hook: nobody else can switch it off, and only the
// administrator can rule out other hooks. load is [File.Loaded] or a cache of it.
func HooksOff(files []File, load func(File) Content, managed bool) *Off {
	for _, f := range slices.Backward(files) {
		if on, set := load(f).Switches[disableAll]; set {
			if on && (f.Managed || !managed) {
				return &Off{f.Path, disableAll}
			}
			break
		}
	}
	for _, f := range files {
		if f.Managed && !managed && load(f).Switches[managedOnly] {
			return &Off{f.Path, managedOnly}
		}
	}
	return nil
}

// SwitchedOffBy is [HooksOff] for a client with this environment in this directory that gets the settings in given
// with --settings, and for a hook wired in them.
func SwitchedOffBy(environ []string, dir string, given []byte) *Off {
	const flag = "--settings of the command"
	return HooksOff(FilesOf(environ, dir, flag), func(f File) Content {
		if f.Path != flag {
			return f.Loaded()
		}
		content, _ := ReadContent(given, "")
		return content
	}, false)
}
