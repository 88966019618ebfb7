package doctor

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"heartbeat/internal/codex/server"
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
	Meter    string   // the heartbeat-meter that install would wire, "" with MeterErr
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
	// Babysitter asks a babysitter command for its version. said is a note about that
	// version for a person.
	Babysitter func(ctx context.Context, command string) (version, said string, err error)
	// Version runs `claude --version`, and returns what that printed; for Codex the same.
	Version func(ctx context.Context, claude string) (string, error)
	// CodexHooks are the hooks that the program knows for sessions in the project.
	CodexHooks func(ctx context.Context, codex string) ([]server.Hook, error)
}

// Hook is what the flags of a hook mean.
type Hook struct {
	Inbox   string
	Persist bool
	Idle    time.Duration
	Rewake  bool // it waits in the background, and wakes the idle session
	Dollars bool // it has limits in dollars
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
