package doctor

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"heartbeat/internal/claude"
	"heartbeat/internal/claude/settings"
)

// source is one of the settings files that the client merges.
type source struct {
	path    string
	managed bool
	given   bool // named on the command line, so it has to be there
	content settings.Content
	there   bool
	err     error
}

// readSources reads the settings files, the weakest first.
func readSources(in Input) []*source {
	var all []*source
	files := settings.Files(in.Project, in.Home, in.variable("CLAUDE_CONFIG_DIR"), in.Managed, in.Settings...)
	for _, f := range files {
		all = append(all, &source{path: f.Path, managed: f.Managed, given: slices.Contains(in.Settings, f.Path)})
	}
	for _, s := range all {
		s.read(in.Stop)
	}
	return all
}

func (s *source) read(self string) {
	text, err := readFile(s.path, maxSettings)
	switch {
	case errors.Is(err, fs.ErrNotExist) && !s.given:
		return
	case err == nil:
		s.content, err = settings.Look(text, self)
	}
	s.there = true
	if s.content.Lax > 0 {
		s.err = fmt.Errorf("line %d is no plain JSON (a comment, or a trailing comma): Claude Code %s loads nothing from such a file",
			s.content.Lax, claude.Measured)
		s.content = settings.Content{}
		return
	}
	s.err = err
}

// checkSettings lists the files that were read, and those that the client cannot read.
func checkSettings(e *examination) []Check {
	var all []Check
	var read []string
	for _, s := range e.sources {
		switch {
		case s.err != nil:
			all = append(all, fail("settings", "correct "+s.path+", or take it away", "%s: %v", e.show(s.path), s.err))
		case s.there:
			read = append(read, e.show(s.path))
		}
	}
	switch {
	case len(read) > 0:
		all = append(all, ok("settings", "read %s", strings.Join(read, ", ")))
	case len(all) == 0:
		all = append(all, ok("settings", "there is no settings file: %s", e.placesLooked()))
	}
	return all
}

// placesLooked names all files that were looked for.
func (e *examination) placesLooked() string {
	var paths []string
	for _, s := range e.sources {
		paths = append(paths, e.show(s.path))
	}
	return "looked at " + strings.Join(paths, ", ")
}

// setting returns a variable's value in the settings and the file that decides about
// it, or nil.
func (e *examination) setting(name string) (string, *source) {
	for _, s := range slices.Backward(e.sources) {
		if value, ok := s.content.Env[name]; ok {
			return value, s
		}
	}
	return "", nil
}

// effective returns a variable of the session: settings override the shell.
func (e *examination) effective(name string) string {
	if value, s := e.setting(name); s != nil {
		return value
	}
	return e.variable(name)
}
