package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"heartbeat/internal/claude"
	"heartbeat/internal/claude/settings"
	"heartbeat/internal/disk"
	clients "heartbeat/internal/supervise/client"
)

// Input is everything that comes from outside.
type Input struct {
	Inbox    string   // an absolute path, or "" for the inbox that is wired
	Project  string   // absolute: where the session is started
	Home     string   // "" when there is none
	Environ  []string // of the session
	Settings []string // further settings files, as given to claude --settings
	Managed  string   // the directory of the managed settings
	Stop     string   // the heartbeat-stop that install would wire, "" with StopErr
	StopErr  error    // why there is none
	Meter    string   // the heartbeat-stop meter that install would wire, "" with MeterErr
	MeterErr error    // why there is none
	UID      int
	Now      time.Time
	// Parse reads a hook's arguments as the hook does. inbox is what it takes
	// without --inbox.
	Parse func(args []string, inbox string) (Hook, error)
	// Runs are the babysitter runs that an inbox drives.
	Runs func(inbox string) []DrivenRun
	// NotCounted says of sessions of an inbox why what they spend cannot be counted.
	NotCounted func(inbox string) []string
	// Prices says what is wrong with the table of prices, "" for nothing.
	Prices func(inbox string) string
	// Babysitter asks a babysitter command for its version. said is a note about that
	// version for a person.
	Babysitter func(ctx context.Context, command string) (version, said string, err error)
	// Version runs `claude --version`, and returns what that printed; for Codex the same.
	Version func(ctx context.Context, claude string) (string, error)
	// CodexHooks are the hooks that the program knows for sessions in the project.
	CodexHooks func(ctx context.Context, codex string) ([]clients.CodexHook, error)
}

// Hook is what the flags of a hook mean.
type Hook struct {
	Inbox   string
	Persist bool
	Idle    time.Duration
	Rewake  bool // it waits in the background, and wakes the idle session
	// Runs are those that it drives, with the command Babysitter.
	Runs       []string
	Babysitter string
}

// examination has what several checks need.
type examination struct {
	Input
	sources []*source
	wires   []*wire
	client  client
	account account
	// inbox is the one that is meant, "" if that is not known.
	inbox string
}

func examine(in Input) *examination {
	e := &examination{Input: in, inbox: in.Inbox}
	e.sources = readSources(in)
	e.wires = e.readWires()
	e.client = readClient(in)
	e.account = readAccount(in)
	if inboxes := e.wiredInboxes(); e.inbox == "" && len(inboxes) == 1 {
		e.inbox = inboxes[0]
	}
	return e
}

// variable returns the shell's value; the last one counts.
func (in Input) variable(name string) string {
	for _, kv := range slices.Backward(in.Environ) {
		if value, ok := strings.CutPrefix(kv, name+"="); ok {
			return value
		}
	}
	return ""
}

// lookPath finds a program as a shell would.
func (in Input) lookPath(name string) (string, bool) {
	for _, dir := range filepath.SplitList(in.variable("PATH")) {
		path := filepath.Join(dir, name)
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && unix.Access(path, unix.X_OK) == nil {
			return path, true
		}
	}
	return "", false
}

// show shortens a path within the project for a sentence.
func (in Input) show(path string) string {
	if rel, err := filepath.Rel(in.Project, path); err == nil && !strings.HasPrefix(rel, "..") {
		return rel
	}
	return path
}

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

// Limits for files that are read whole. The client's account file grows with every
// project.
const (
	maxSettings = settings.MaxFile
	maxAccount  = 256 << 20
)

// readFile reads a user's file of at most limit bytes.
func readFile(path string, limit int64) ([]byte, error) { return disk.ReadFile(path, limit) }
