package hosting

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"heartbeat/internal/cli"
	"heartbeat/internal/host/rights"
	"heartbeat/internal/hosting/folder"
	"heartbeat/internal/hosting/verbs"
)

// hosted is a session with its record.
type hosted struct {
	folder.Folder
	State *folder.State
	// status is the record's, or Dead where nobody hosts a session without an end.
	status folder.Status
	// worked says that a process works on the session: its host, or one that finishes
	// for it.
	worked bool
	// unfinished says that somebody has to finish what a killed host left undone.
	unfinished bool
}

// open reads a session's record. The error matches [fs.ErrNotExist] if the session has
// no folder.
func open(f folder.Folder) (*hosted, error) {
	v, err := f.View()
	if err != nil {
		return nil, err
	}
	h := &hosted{Folder: f, State: v.State, status: v.Status, worked: v.Host != 0, unfinished: v.Unfinished()}
	if h.State == nil { // it is only starting, or its host died as it did
		h.State = &folder.State{SessionID: f.ID, Status: folder.Pending, DB: f.DB}
	}
	return h, nil
}

// reopen reads the record again.
func (h *hosted) reopen() error {
	again, err := open(h.Folder)
	if err == nil {
		*h = *again
	}
	return err
}

// folders returns the folders of the sessions that the flags mean. Those of the index
// that are gone are among them. The error names what could not be read.
func folders(o *verbs.Shown) ([]folder.Folder, error) {
	if o.DB == "" {
		index, err := folder.UserIndex()
		if err != nil {
			return nil, err
		}
		return index.All()
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

// find returns the one session that the flags name.
func find(o *verbs.Look) (*hosted, error) {
	all, err := folders(&o.Shown)
	var named []*hosted
	problems := err
	for _, f := range all {
		if !strings.HasPrefix(f.ID, o.ID) {
			continue
		}
		h, err := open(f)
		switch {
		case errors.Is(err, fs.ErrNotExist): // its folder was removed
			continue
		case err != nil:
			problems = errors.Join(problems, err)
			continue
		}
		named = append(named, h)
	}
	named = exact(named, o.ID)
	switch len(named) {
	case 1:
		return named[0], nil
	case 0:
		if problems != nil {
			return nil, problems
		}
		return nil, fmt.Errorf("no session is called %q: %s", o.ID, command+" list shows them")
	}
	return nil, ambiguous(o.ID, named)
}

// exact leaves out those that only begin with the id if one has it whole.
func exact(all []*hosted, id string) (same []*hosted) {
	for _, h := range all {
		if h.ID == id {
			same = append(same, h)
		}
	}
	if same == nil {
		return all
	}
	return same
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

// command is this command as one types it.
const command = verbs.CommandName

// printJSON prints v as the verbs do with --json.
func printJSON(s cli.Streams, v any) error { return cli.PrintJSON(s.Out, v) }
