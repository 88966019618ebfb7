package folder

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"unicode/utf8"

	"heartbeat/internal/disk"
	"heartbeat/internal/flat"
	"heartbeat/internal/hosting/store"
)

// maxState bounds a record, in bytes. A config has at most 64 MiB, and the record repeats its metadata and unknown keys.
const maxState = 80 << 20

// Read reads the record. Without one the error matches [fs.ErrNotExist].
func (f Folder) Read() (*State, error) {
	db := f.store()
	defer db.Close() // only read
	return f.read(db)
}

// Read is [Folder.Read] for the holder of the lock.
func (l *Lock) Read() (*State, error) { return l.Folder.read(l.DB) }

// store returns the host's database for callers that only read it.
func (f Folder) store() *store.Store { return store.In(Root(f.DB), "") }

func (f Folder) read(db *store.Store) (*State, error) {
	err := f.check()
	var s *State
	if err == nil {
		if s, err = f.readFile(); errors.Is(err, fs.ErrNotExist) {
			s, err = f.readDB(db)
		}
	}
	if err == nil {
		err = errors.Join(s.LoadReports(db), f.readBefore(s))
	}
	if err != nil {
		return nil, fmt.Errorf("read the state of session %s: %w", f.ID, err)
	}
	return s, nil
}

// readBefore fills in a given inbox's earlier counts from an older release's file.
func (f Folder) readBefore(s *State) error {
	if s.OwnInbox || s.Before != nil {
		return nil
	}
	text, err := disk.ReadState(filepath.Join(f.Dir(), "inbox-mark.json"), 4<<10)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return errors.Join(err, json.Unmarshal(text, &s.Before))
}

func (f Folder) readDB(db *store.Store) (*State, error) {
	parts, err := db.Parts(context.Background(), f.ID)
	if err != nil {
		return nil, err
	}
	if len(parts) == 0 {
		return nil, fs.ErrNotExist
	}
	s := &State{}
	for name, part := range s.parts() {
		if err := json.Unmarshal([]byte(parts[name]), part); err != nil {
			return nil, fmt.Errorf("its %s in %s is damaged: %w", name, db.Path(), err)
		}
	}
	if s.SessionID != f.ID || !s.Status.known() {
		return nil, fmt.Errorf("%s has no record of this session, but another one in its place", db.Path())
	}
	return s, nil
}

// LoadReports fills in the state of the session's reports, and of the messages that the guild's table lacked at the end:
// another process may have sent them since. Without a report's row in the database, an older release's record has its
// state.
func (s *State) LoadReports(db *store.Store) error {
	for kind, into := range map[store.Kind]*Report{store.Running: &s.RunningReport, store.Record: &s.TerminalReport} {
		r, found, err := db.Report(context.Background(), s.SessionID, kind)
		switch {
		case err != nil:
			return err
		case found:
			*into = reportOf(r)
		}
	}
	if s.Host != nil || s.Store == "" || s.Waiting == 0 {
		return nil
	}
	waiting, err := db.Waiting(context.Background(), s.SessionID)
	if err == nil && waiting == 0 {
		s.Store = ""
	}
	return err
}

func reportOf(r store.Report) Report {
	report := Report{State: Waiting, Reason: r.Reason}
	if !r.Tried.IsZero() {
		report.At = &r.Tried
	}
	switch {
	case r.State == store.Sent:
		report = Report{State: Delivered, At: report.At, As: Status(r.Reason)}
	case r.State == store.Refused:
		report.State, report.Reason = Refused, fmt.Sprintf("HTTP %d: %s", r.Code, r.Reason)
	case report.At != nil:
		report.State = DeadLettered
	}
	return report
}

// readFile reads the record in the file of older releases, whose hosts may still write it.
func (f Folder) readFile() (*State, error) {
	b, err := disk.ReadState(f.StatePath(), maxState)
	if err != nil {
		return nil, err
	}
	s := &State{}
	if err := json.Unmarshal(b, s); err != nil {
		return nil, fmt.Errorf("%s is no state record: %w", f.StatePath(), err)
	}
	if s.Version != Version || s.SessionID != f.ID || !s.Status.known() {
		return nil, fmt.Errorf("%s is no state record of this session", f.StatePath())
	}
	return s, nil
}

// TakeOver converts what an older release has stored of a session, unless another process works on it.
func (f Folder) TakeOver(ctx context.Context) error {
	if there, err := disk.Exists(f.StatePath()); err != nil || !there {
		return err
	}
	lock, err := f.Lock(ctx)
	if errors.As(err, new(*BusyError)) || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return errors.Join(err, lock.Release())
}

// adopt moves the record and messages of an older release into the database.
func (l *Lock) adopt() error {
	s, err := l.Folder.readFile()
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var parts store.Parts
	if err == nil {
		parts, err = l.Parts(s)
	}
	if err == nil {
		_, err = l.DB.Put(context.Background(), l.Folder.ID, parts, true)
	}
	if err == nil {
		guild := filepath.Join(filepath.Dir(l.Folder.DB), filepath.Base(s.DB))
		err = l.DB.Adopt(context.Background(), l.Folder.ID, guild, l.Folder.SpoolPath())
	}
	if err == nil { // synced: a file that came back would be read again
		err = errors.Join(disk.Remove(l.Folder.SpoolPath()), disk.Remove(l.Folder.StatePath()), disk.SyncDir(l.Folder.Dir()))
	}
	if err != nil {
		return fmt.Errorf("take over the state of session %s: %w", l.Folder.ID, err)
	}
	return nil
}

// Write replaces the record. The record survives a kill at once, and a power loss once the next decision is
// committed. s must not change meanwhile. If the lock was removed, the session's host takes it again.
func (l *Lock) Write(s *State) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.write(s); err != nil {
		return fmt.Errorf("write the state of session %s: %w", l.Folder.ID, err)
	}
	return nil
}

func (l *Lock) write(s *State) error {
	if l.lock == nil {
		return disk.ErrLockGone
	}
	switch err := l.lock.Check(); {
	case err != nil && (s.Host == nil || *s.Host != ProcessOf(os.Getpid())):
		return err
	case err != nil: // nobody else writes the record while the host lives
		l.retake(s)
	}
	all, err := l.Parts(s)
	if err != nil {
		return err
	}
	changed := maps.Clone(all)
	if l.configured {
		delete(changed, "config") // it never changes
	}
	have, err := l.DB.Put(context.Background(), l.Folder.ID, changed, false)
	if err == nil && have < len(all) { // the database with the rest was replaced
		_, err = l.DB.Put(context.Background(), l.Folder.ID, all, false)
	}
	l.configured = err == nil
	return err
}

// Parts encodes the record for the database, with its version and ID.
func (l *Lock) Parts(s *State) (store.Parts, error) {
	if !s.Status.known() {
		return nil, fmt.Errorf("%q is no status of a session", s.Status)
	}
	named := *s
	named.Version, named.SessionID = Version, l.Folder.ID
	all, size := store.Parts{}, 0
	for name, part := range named.parts() {
		text, err := flat.JSON(part)
		if err != nil {
			return nil, err
		}
		all[name], size = string(text), size+len(text)
	}
	if size > maxState {
		return nil, fmt.Errorf("%d bytes: %w", size, disk.ErrTooLarge)
	}
	return all, nil
}

// parts returns pointers to the record's parts by their names in the database.
func (s *State) parts() map[string]any {
	return map[string]any{"config": &s.Config, "facts": &s.Facts, "outcome": &s.Outcome}
}

// Cut shortens a text to at most most bytes, at the end of a character, and reports whether the text was longer.
func Cut(text string, most int) (string, bool) {
	if len(text) <= most {
		return text, false
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most], true
}

// View is the present state of a session.
type View struct {
	Folder
	State  *State // without a Version if the session has no record: it is starting, or its host died then
	Status Status // the record's, or Dead
	Host   int    // pid of the process that works on the session, -1 if unknown, 0 for none
}

// Unfinished reports whether a host or finisher was killed, so that another process has to finish the
// session: end its processes, settle its entries, report its end and remove its temporary files. A
// session without a record has not begun.
func (v View) Unfinished() bool {
	return v.Host == 0 && v.State.Version != 0 && !v.State.finished()
}

// finished reports whether the last step for a session was done: the removal of the host from its record.
func (s *State) finished() bool {
	return s.Status.Ended() && s.Host == nil && s.TerminalReport.State != ""
}

// View reads a session without a lock. The session is Dead if it has not ended and its host does not live, even
// while another process finishes it. Without a folder the error matches [fs.ErrNotExist].
func (f Folder) View() (View, error) {
	db := f.store()
	defer db.Close() // only read
	return f.ViewIn(db)
}

// Views reads sessions. It leaves out those without a folder; the error names those that cannot be read.
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
	v, err := f.viewOnce(db)
	if err == nil && v.Status == Dead {
		return f.viewOnce(db) // its host may have ended after its record was read
	}
	return v, err
}

func (f Folder) viewOnce(db *store.Store) (View, error) {
	v := View{Folder: f}
	if err := f.check(); err != nil {
		return v, err
	}
	var err error
	switch v.State, err = f.read(db); {
	case errors.Is(err, fs.ErrNotExist):
		v.State = &State{Config: Config{SessionID: f.ID, DB: f.DB}, Outcome: Outcome{Summary: Summary{Status: Pending}}}
	case err != nil:
		return v, err
	}
	if Root(v.State.DB) == Root(f.DB) { // several databases may share this root
		v.DB = v.State.DB
	}
	var live bool
	v.Host, live = f.worker(v.State)
	if v.Status = v.State.Status; !live && !v.Status.Ended() {
		v.Status = Dead
	}
	return v, nil
}

// worker returns the pid of the process that works on a session, and whether that is its host. Either the lock's holder
// or the recorded process is enough: some systems do not show the holder, and other containers do not show the process.
func (f Folder) worker(s *State) (pid int, isHost bool) {
	holder := f.Holder()
	if s.Host == nil {
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
