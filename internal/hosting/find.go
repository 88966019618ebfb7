package hosting

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"heartbeat/internal/cli"
	"heartbeat/internal/hosting/folder"
	"heartbeat/internal/machine/rights"
	"heartbeat/internal/see"

	"github.com/spf13/pflag"
)

// sessionIDs is what the arguments of verbs name that are about one session: see
// [cli.Verb].
const sessionIDs = "sessions"

// whichID is the paragraph about what a session may be called.
const whichID = `ID is the session's id, or a beginning of it that no other session has.`

// shownFlags is what every verb about hosted sessions has.
type shownFlags struct {
	DB   string // only sessions beside this database; "": all of this user's
	JSON bool
}

func (o *shownFlags) add(f *pflag.FlagSet) {
	f.StringVar(&o.DB, "db", "", "look for sessions beside this database (`path`), in place of all that this user hosts")
	f.BoolVar(&o.JSON, "json", false, "print JSON, one object a line")
}

func (o *shownFlags) check(f *pflag.FlagSet) error {
	if f.Changed("db") && o.DB == "" {
		return errors.New("--db is empty: name a database, or leave the flag out")
	}
	return nil
}

// oneFlags is about one session.
type oneFlags struct {
	shownFlags
	ID    string
	Color string
}

// one takes the one argument of a verb that is about one session.
func (o *oneFlags) one(f *pflag.FlagSet, args []string) error {
	switch {
	case len(args) == 0 || args[0] == "":
		return errors.New("name a session: heartbeat-host list shows them")
	case len(args) > 1:
		return fmt.Errorf("unexpected argument %q", args[1])
	}
	o.ID = args[0]
	return o.check(f)
}

// hosted is a session with its record.
type hosted struct {
	folder.View
	troubles []see.Trouble // of its inbox, once [lookInto] has looked
}

// open reads a session's record. The error matches [fs.ErrNotExist] if the session has
// no folder.
func open(f folder.Folder) (*hosted, error) {
	v, err := f.View()
	if err != nil {
		return nil, err
	}
	return hostedBy(v), nil
}

// hostedBy is a session that was looked at.
func hostedBy(v folder.View) *hosted {
	if v.State == nil { // it is only starting, or its host died as it did
		v.State = &folder.State{
			Config: folder.Config{SessionID: v.ID, DB: v.DB}, Outcome: folder.Outcome{Status: folder.Pending},
		}
	}
	return &hosted{View: v}
}

// reopen reads the record again.
func (h *hosted) reopen() error {
	again, err := open(h.Folder)
	if err == nil {
		*h = *again
	}
	return err
}

// folders returns the folders of the sessions that the flags mean, by database and id. The
// error names what could not be read.
func folders(o *shownFlags) ([]folder.Folder, error) {
	if o.DB == "" {
		return folder.Everywhere()
	}
	if err := becomeOwner(o.DB); err != nil {
		return nil, err
	}
	return folder.Beside(o.DB)
}

// becomeOwner makes root act as the owner of the database's directory.
func becomeOwner(db string) error {
	who, err := rights.BecomeOwner(filepath.Dir(db))
	if err != nil && who != "" {
		err = fmt.Errorf("as %s, whose directory it is: %w", who, err)
	}
	return err
}

// sessions reads those that the flags mean, and whose ids begin with a text. What cannot be
// read is left out and named in the error.
func sessions(o *shownFlags, id string) (all []*hosted, problems error) {
	found, problems := folders(o)
	found = slices.DeleteFunc(found, func(f folder.Folder) bool { return !strings.HasPrefix(f.ID, id) })
	views, err := folder.Views(found)
	for _, v := range views {
		all = append(all, hostedBy(v))
	}
	return all, errors.Join(problems, err)
}

// find returns the one session that the flags name.
func find(o *oneFlags) (*hosted, error) {
	named, problems := sessions(&o.shownFlags, o.ID)
	return pick(named, o.ID, problems)
}

// pick returns the one session of those whose ids begin with a text that is meant by
// it. problems are why there may be others.
func pick(named []*hosted, id string, problems error) (*hosted, error) {
	whole := slices.DeleteFunc(slices.Clone(named), func(h *hosted) bool { return h.ID != id })
	if len(whole) > 0 { // the others only begin with it
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

// printJSON prints v as the verbs do with --json.
func printJSON(s cli.Streams, v any) error { return cli.PrintJSON(s.Out, v) }
