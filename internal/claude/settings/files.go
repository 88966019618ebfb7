package settings

import (
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
	case scope == Project:
		return filepath.Join(projectDir, ".claude", "settings.json"), nil
	case scope == Local:
		return filepath.Join(projectDir, ".claude", "settings.local.json"), nil
	case configDir != "":
		return filepath.Join(configDir, "settings.json"), nil
	case homeDir == "":
		return "", errors.New("user settings: no home directory given")
	}
	return filepath.Join(homeDir, ".claude", "settings.json"), nil
}

// File is one of the settings files that the client merges.
type File struct {
	Path string
	// Managed says that it is an administrator's, which overrides all others.
	Managed bool
}

// Files returns the settings files of a session in a project, the weakest first, including those that do not exist. given
// are those on the client's command line, managed is the directory of the administrator's files, and the other arguments
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
	for _, path := range managedFiles(managed) {
		all = append(all, File{Path: path, Managed: true})
	}
	return all
}

// FilesOf is [Files] of a client with this environment, in this directory.
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

// ManagedDir is where the client looks for an administrator's settings on this system.
func ManagedDir() string {
	if runtime.GOOS == "darwin" {
		return "/Library/Application Support/ClaudeCode"
	}
	return "/etc/claude-code"
}

// managedFiles returns the administrator's file and its drop-ins.
func managedFiles(dir string) []string {
	dropIns, _ := filepath.Glob(filepath.Join(dir, "managed-settings.d", "[^.]*.json")) // usually there are none
	return append([]string{filepath.Join(dir, "managed-settings.json")}, dropIns...)
}

// Load is what the client loads of the file, and whether it is there. The error says why the client loads nothing of a
// file that is. command is that of [Look].
func (f File) Load(command string) (content Content, there bool, err error) {
	text, err := disk.ReadFile(f.Path, MaxFile)
	if errors.Is(err, fs.ErrNotExist) {
		return Content{}, false, nil
	}
	if err == nil {
		content, err = Look(text, command)
	}
	if err == nil && content.Lax > 0 {
		err = fmt.Errorf("line %d is no plain JSON (a comment, or a trailing comma): Claude Code loads nothing from such a file", content.Lax)
	}
	if err != nil {
		content = Content{}
	}
	return content, true, err
}

// Loaded is what the client loads of the file, nothing if it cannot.
func (f File) Loaded() Content {
	content, _, _ := f.Load("")
	return content
}

// Below returns those of the files, which come the weakest first, that the one at path has precedence over. A path that is
// none of them is taken for one that the client gets with --settings.
func Below(files []File, path string) []File {
	i := slices.IndexFunc(files, func(f File) bool { return f.Managed || filepath.Clean(f.Path) == filepath.Clean(path) })
	if i < 0 {
		return files
	}
	return files[:i]
}

// TakeFlag takes the flag --settings out of the client's arguments, which come without
// the program's name, and returns its value, "" for none. Of several the last counts, as
// it does with the client.
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

// ReadFlag reads the value of --settings as a client in dir does: a file, or the JSON
// itself.
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

// Off is what keeps the client from running hooks: a member of a settings file.
type Off struct{ Path, Member string }

const (
	disableAll  = "disableAllHooks"
	managedOnly = "allowManagedHooksOnly"
)

// String says so, and what to do.
func (o Off) String() string {
	return "hooks are disabled by " + o.Member + " in " + o.Path + ": " + o.Fix()
}

// Fix is what to do about it.
func (o Off) Fix() string {
	if o.Member == managedOnly {
		return "only those that are wired there run, so ask the administrator"
	}
	return "take it out"
}

// HooksOff returns what keeps a hook from running in the files, which come the weakest first, nil for nothing. The last
// file that says anything about it counts. managed says that the hook is an administrator's, whose hooks nobody else
// switches off; he alone can rule out those of others. look is [File.Loaded], or what was read before.
func HooksOff(files []File, look func(File) Content, managed bool) *Off {
	for _, f := range slices.Backward(files) {
		if on, set := look(f).Switches[disableAll]; set {
			if on && (f.Managed || !managed) {
				return &Off{f.Path, disableAll}
			}
			break
		}
	}
	for _, f := range files {
		if f.Managed && !managed && look(f).Switches[managedOnly] {
			return &Off{f.Path, managedOnly}
		}
	}
	return nil
}

// SwitchedOffBy is [HooksOff] of a client with this environment, in this directory, that gets these settings with
// --settings, and of a hook that is wired in them.
func SwitchedOffBy(environ []string, dir string, given []byte) *Off {
	const flag = "--settings of the command"
	return HooksOff(FilesOf(environ, dir, flag), func(f File) Content {
		if f.Path != flag {
			return f.Loaded()
		}
		content, _ := Look(given, "")
		return content
	}, false)
}
