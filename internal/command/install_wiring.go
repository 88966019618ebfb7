package command

import (
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/pflag"

	"heartbeat/internal/claude/settings"
	"heartbeat/internal/cli"
	"heartbeat/internal/hook"
)

// wiring turns the flags into what the settings file says. Only the given flags are written, so that defaults can
// get better.
func (o *installFlags) wiring() (settings.Wiring, error) {
	if err := o.wired.Check(o.hook, nil); err != nil {
		return settings.Wiring{}, cli.Usage(err)
	}
	program, err := cli.Beside(hook.CommandName)
	if err != nil && o.verb == "uninstall" {
		// The hook may be gone already. Only its name tells which settings are heartbeat's.
		program, err = filepath.Abs(hook.CommandName)
	}
	if err != nil {
		return settings.Wiring{}, err
	}
	for _, path := range []*string{&o.wired.Inbox, &o.wired.SignalFile} {
		if *path == "" {
			continue
		}
		if *path, err = filepath.Abs(*path); err != nil {
			return settings.Wiring{}, err
		}
	}
	if err := o.wired.Runs.Absolute(); err != nil {
		return settings.Wiring{}, err
	}
	wait := max(time.Duration(o.wired.Idle), o.wired.Orphan.Checks.Longest())
	if o.wired.Rewake {
		return settings.Waking(program, o.args()), nil
	}
	if o.agent == codexAgent {
		return settings.Lines(program, o.args(), wait), nil
	}
	return settings.Blocking(program, o.args(), wait), nil
}

func (o *installFlags) args() []string {
	args := []string{"--inbox", o.wired.Inbox}
	o.hook.VisitAll(func(flag *pflag.Flag) {
		if flag.Changed && flag.Name != "inbox" && !flag.Hidden {
			args = append(args, spelled(flag)...)
		}
	})
	return args
}

// spelled is a flag as it would be given.
func spelled(f *pflag.Flag) (args []string) {
	several, repeated := f.Value.(pflag.SliceValue)
	switch {
	case repeated:
		for _, value := range several.GetSlice() {
			args = append(args, "--"+f.Name, value)
		}
	case f.Value.Type() != "bool":
		return []string{"--" + f.Name, f.Value.String()}
	case f.Value.String() == "true":
		return []string{"--" + f.Name}
	}
	return args
}

func (o *installFlags) path() (string, error) {
	if o.settings != "" {
		return filepath.Abs(o.settings)
	}
	project, err := os.Getwd()
	if err != nil {
		return "", err
	}
	home, _ := os.UserHomeDir() // "" if there is none
	if o.agent == codexAgent {
		return settings.LinesPath(settings.Scope(o.scope), project, home, os.Getenv("CODEX_HOME"))
	}
	return settings.Path(settings.Scope(o.scope), project, home, os.Getenv("CLAUDE_CONFIG_DIR"))
}

// projectOf is the project to which a settings file at path belongs, if any.
func projectOf(path string) (dir string, ok bool) {
	above := filepath.Dir(path)
	return filepath.Dir(above), filepath.Base(above) == ".claude" && slices.Contains([]string{"settings.json", "settings.local.json"}, filepath.Base(path))
}

// sayOff says what keeps the hooks in the file at path from running.
func sayOff(path string, s cli.Streams) {
	dir, ok := projectOf(path)
	if !ok {
		dir, _ = os.Getwd()
	}
	is := func(f settings.File) bool { return f.Path == path }
	files := settings.FilesOf(os.Environ(), dir)
	if !slices.ContainsFunc(files, is) { // as one that a session gets with --settings
		files = settings.FilesOf(os.Environ(), dir, path)
	}
	if off := settings.HooksOff(files, settings.File.Loaded, files[slices.IndexFunc(files, is)].Managed); off != nil {
		s.Note("no session will ask for entries: %v", off)
	}
}
