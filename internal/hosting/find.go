package hosting

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"heartbeat/internal/cli"
	"heartbeat/internal/cli/program"
	"heartbeat/internal/disk"
	"heartbeat/internal/hosting/folder"
	"heartbeat/internal/see"
	"heartbeat/internal/words"

	"github.com/spf13/pflag"
)

// sessionIDs describes the session arguments of verbs: see [cli.Verb].
const sessionIDs = "sessions"

const whichID = `ID is the session's id, or a beginning of it that no other session has.`

type shownFlags struct {
	DB    string // only sessions beside this database; "" for all of this user's
	JSON  bool
	Color string
}

func (o *shownFlags) add(f *pflag.FlagSet) {
	f.Var(cli.Named(&o.DB, "name a database, or leave the flag out"), "db", "only sessions beside this database (`path`), instead of all that this user hosts")
	f.BoolVar(&o.JSON, "json", false, "print JSON, one object a line")
}

type oneFlags struct {
	shownFlags
	ID string
}

// parse returns a check of a verb's arguments: the ID of its session, then further checks.
func (o *oneFlags) parse(more ...func() error) func(args []string) error {
	return func(args []string) error {
		if len(args) == 0 || args[0] == "" {
			return errors.New("name a session: heartbeat-host list shows them")
		}
		o.ID = args[0]
		for _, check := range more {
			if err := check(); err != nil {
				return err
			}
		}
		return cli.NoArgs(args[1:])
	}
}

// action is [actionOf] for a verb about one session, with which it calls do.
func (o *oneFlags) action(f *pflag.FlagSet, do func(*hosted, cli.Streams) error, more ...func() error) cli.Action {
	return actionOf(f, o.parse(more...), func(s cli.Streams) error {
		named, problems := sessions(&o.shownFlags, o.ID)
		h, err := pick(named, o.ID, problems)
		if err != nil {
			return err
		}
		return do(h, s)
	})
}

type hosted struct {
	folder.View
	troubles []see.Trouble // of its inbox, set by [loadTroubles]
}

// reopen reads the session's record. The error matches [fs.ErrNotExist] if the session has no folder.
func (h *hosted) reopen() error {
	v, err := h.Folder.View()
	if err == nil {
		*h = hosted{View: v}
	}
	return err
}

// folders returns the folders of the selected sessions, by database and ID. The error names what could not be read.
func folders(o *shownFlags) ([]folder.Folder, error) {
	dbs, problems := databases(o)
	all, err := folder.Beside(dbs...)
	return all, errors.Join(problems, err)
}

// databases returns the selected databases. If one is given, root becomes its directory's owner.
func databases(o *shownFlags) ([]string, error) {
	if o.DB == "" {
		return folder.Databases()
	}
	if _, err := disk.BecomeOwner(filepath.Dir(o.DB)); err != nil {
		return nil, err
	}
	db, err := filepath.Abs(o.DB)
	return []string{db}, err
}

// sessions returns the selected sessions whose IDs begin with id. The error names those that could not be read.
func sessions(o *shownFlags, id string) (all []*hosted, problems error) {
	found, problems := folders(o)
	found = slices.DeleteFunc(found, func(f folder.Folder) bool { return !strings.HasPrefix(f.ID, id) })
	views, err := folder.Views(found)
	for _, v := range views {
		all = append(all, &hosted{View: v})
	}
	return all, errors.Join(problems, err)
}

// pick returns the session that id names among those whose IDs begin with id. problems is why there may be others.
func pick(named []*hosted, id string, problems error) (*hosted, error) {
	whole := slices.DeleteFunc(slices.Clone(named), func(h *hosted) bool { return h.ID != id })
	if len(whole) > 0 { // an exact ID wins over longer ones
		named = whole
	}
	switch {
	case len(named) == 1:
		return named[0], nil
	case len(named) > 1:
		return nil, ambiguous(id, named)
	case problems != nil:
		return nil, problems
	}
	return nil, fmt.Errorf("no session is called %q: %s", id, command+" list shows them")
}

func ambiguous(id string, all []*hosted) error {
	first := all[0]
	for _, h := range all[1:] {
		if h.ID == first.ID {
			return fmt.Errorf("there are sessions called %s beside %s and beside %s: name the database with --db", h.ID, first.DB, h.DB)
		}
	}
	var names []string
	for _, h := range all[:min(len(all), 5)] {
		names = append(names, h.ID)
	}
	if len(all) > 5 {
		names = append(names, "...")
	}
	return fmt.Errorf("%q may be any of %d sessions: name one of %s", id, len(all), strings.Join(names, ", "))
}

func (o *shownFlags) show(s cli.Streams, v any, line string) error {
	return program.Report(s, o.JSON, v, words.Line(line))
}
