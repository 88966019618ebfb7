package queue

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	recovery "heartbeat/recover"

	"heartbeat/inbox"
	"heartbeat/internal/claim"
	"heartbeat/internal/cli"
	"heartbeat/internal/disk"
	"heartbeat/internal/host"
)

// lockWait is how long the inbox's own lock may be held by somebody else.
const lockWait = 30 * time.Second

// Options say how a session's inbox is worked through.
type Options struct {
	Inbox string // path of the queue file
	// Own says that the inbox is the session's own: whatever is in it belongs to the
	// session. Its directory is made if it does not exist.
	Own bool
	// Mark is the file that keeps, for an inbox that is not the session's own, what was in
	// it when the session began. It lies in the session's folder, so that whoever
	// finishes the session finds it.
	Mark string
	// Dir is a directory that only this user can reach, for the settings that wire the
	// hook: whoever could replace them could run commands as this user.
	Dir  string
	Hook string // absolute path of heartbeat-stop, "" for the one beside this command
	Cwd  string // the client's working directory
	Env  []string
	// Settings say what becomes of entries, and what they may cost.
	Settings recovery.Settings
	// Background is how long an entry whose turn left tasks running in the background
	// waits for them, 0 for not at all.
	Background time.Duration
	// Warn gets sentences for the log about what was found and repaired; nil drops them.
	Warn func(string)
}

// Queue is the inbox of a session. Its methods are not safe for concurrent use, but for
// [Queue.Put].
type Queue struct {
	o    Options
	box  *inbox.Inbox
	lock *disk.Lock // nil before Claim
	mark mark
	// round is what is known of the client that is, or was last, at work.
	round round
	// ended is the session of the round that was settled last, and over the limit that
	// its client was ended by.
	ended string
	over  *Over
}

// round is one client.
type round struct {
	start   string // its name, which its hook has too
	session string // its session, "" if that is not known beforehand
	seq     int64  // number of the first commit that may be its own, 0 before
	hooks   bool   // nothing is known to keep it from running its hooks
}

// Open opens the inbox. It changes nothing in it, so that whoever finishes a session can
// open the inbox of a dead one.
func Open(o Options) (*Queue, error) {
	if o.Hook == "" {
		path, err := cli.Beside("heartbeat-stop")
		if err != nil {
			return nil, fmt.Errorf("find the hook: %w", err)
		}
		o.Hook = path
	}
	if o.Warn == nil {
		o.Warn = func(string) {}
	}
	if o.Own {
		if err := os.MkdirAll(filepath.Dir(o.Inbox), 0o700); err != nil {
			return nil, fmt.Errorf("make the session's inbox: %w", err)
		}
	}
	box, err := inbox.Open(o.Inbox, inbox.Options{LockWait: lockWait})
	if err != nil {
		return nil, err
	}
	q := &Queue{o: o, box: box}
	if q.mark, err = q.loadMark(); err != nil {
		return nil, err
	}
	return q, nil
}

// Path is the absolute path of the queue file.
func (q *Queue) Path() string { return q.box.Path() }

// Claim keeps launchers and other hosts off the inbox until [Queue.Close]. The error is a
// [claim.BusyError] if somebody else works on it, and refuses an inbox whose state others
// could forge.
func (q *Queue) Claim(ctx context.Context) (err error) {
	if q.lock, err = claim.Take(q.box); err != nil {
		return err
	}
	if err = claim.CheckRights(q.box, q.o.Warn); err == nil {
		err = claim.CheckFree(ctx, q.box)
	}
	if err == nil {
		err = q.keepMark()
	}
	if err != nil {
		return errors.Join(err, q.Close())
	}
	warnings, err := q.box.MoveForeignAside(ctx)
	for _, w := range warnings {
		q.o.Warn(w)
	}
	return err
}

// Close lets others work on the inbox, and removes the settings. It does nothing before
// [Queue.Claim]: the settings are those of the session's host then.
func (q *Queue) Close() error {
	if q.lock == nil {
		return nil
	}
	err := errors.Join(disk.Remove(q.settingsPath()), q.lock.Release())
	q.lock = nil
	return err
}

// Put appends an entry. An id that was used before appends nothing, and its receipt says
// where that entry is; without an id the entry gets one. A blank text is no entry: ok is
// false then.
func (q *Queue) Put(ctx context.Context, id, text string) (r inbox.Receipt, ok bool, err error) {
	if blank(text) {
		return r, false, nil
	}
	r, err = q.box.Append(ctx, inbox.Message{ID: id, Text: text}, cli.DefaultSettle)
	for _, w := range r.Warnings {
		q.o.Warn(w)
	}
	return r, err == nil, err
}

// transact is a transaction whose warnings are passed on.
func (q *Queue) transact(ctx context.Context, do func(*inbox.Tx) error) (err error) {
	tx, err := q.box.Begin(ctx)
	if err != nil {
		return err
	}
	defer func() {
		for _, w := range tx.Warnings() {
			q.o.Warn(w)
		}
		err = errors.Join(err, tx.Close())
	}()
	return do(tx)
}

// asker is this host, as it asks what becomes of entries. It has the prompt itself until
// its client is started.
func (q *Queue) asker() recovery.Asker {
	return recovery.Asker{
		Settings: q.o.Settings, Box: q.box, Client: recovery.Process{PID: os.Getpid()},
		Note: func(format string, args ...any) { q.o.Warn(fmt.Sprintf(format, args...)) },
	}
}

func newName() (string, error) { return host.RandomName() }
