package folder

import (
	"errors"
	"io/fs"

	"heartbeat/internal/hosting/store"
)

// View is a session as it is right now.
type View struct {
	Folder
	State  *State // nil if there is no record (yet)
	Status Status // the record's, or Dead
	Host   int    // pid of the process at work on the session, -1 if unknown, 0 for none
}

// Unfinished reports whether a host or finisher was killed, so that somebody has to finish the
// session: end its processes, settle its entries, report its end and remove its temporary files. A
// state without a version was never written: nothing has begun.
func (v View) Unfinished() bool {
	return v.Host == 0 && v.State != nil && v.State.Version != 0 && !v.State.finished()
}

// finished reports whether the last step for a session was done: taking the host out of its record.
func (s *State) finished() bool {
	return s.Status.Ended() && s.Host == nil && s.TerminalReport.State != ""
}

// View looks at a session without a lock. The session is Dead if it has no end and nobody works on it; a
// process that finishes it does not make it live. Without a folder the error matches [fs.ErrNotExist].
func (f Folder) View() (View, error) {
	db := f.store()
	defer db.Close() // only read
	return f.ViewIn(db)
}

// Views looks at sessions. Those without a folder are left out; the error names those that cannot be read.
func Views(all []Folder) (views []View, problems error) {
	dbs := map[string]*store.Store{}
	for _, f := range all {
		db := dbs[Root(f.DB)]
		if db == nil {
			db = f.store()
			defer db.Close() // only read
			dbs[Root(f.DB)] = db
		}
		v, err := f.ViewIn(db)
		switch {
		case err == nil:
			views = append(views, v)
		case !errors.Is(err, fs.ErrNotExist):
			problems = errors.Join(problems, err)
		}
	}
	return views, problems
}

// ViewIn is [Folder.View] for callers that have the host's database open.
func (f Folder) ViewIn(db *store.Store) (View, error) {
	v, err := f.look(db)
	if err == nil && v.Status == Dead {
		return f.look(db) // its host may have ended between the two looks
	}
	return v, err
}

func (f Folder) look(db *store.Store) (View, error) {
	v := View{Folder: f}
	if err := f.check(); err != nil {
		return v, err
	}
	var err error
	if v.State, err = f.read(db); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return v, err
	}
	if v.State != nil && Root(v.State.DB) == Root(f.DB) { // the folder serves all databases beside it
		v.DB = v.State.DB
	}
	var live bool
	v.Host, live = f.worker(v.State)
	switch {
	case v.State != nil && (live || v.State.Status.Ended()):
		v.Status = v.State.Status
	case live:
		v.Status = Pending
	default:
		v.Status = Dead
	}
	return v, nil
}

// worker returns the pid of the process that works on a session, and whether that is its host. Some
// systems and file systems do not show a lock's holder, and a recorded process is unknown in
// another container; either is enough.
func (f Folder) worker(s *State) (pid int, isHost bool) {
	holder := f.Holder()
	if s == nil || s.Host == nil {
		return holder, holder != 0
	}
	alive, known := s.Host.Alive()
	switch {
	case known && alive && !s.Status.Ended():
		return s.Host.PID, true
	case known:
		return holder, false
	}
	return holder, holder != 0
}
