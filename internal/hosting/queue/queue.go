// Package queue is the inbox of a hosted session: how its prompts become entries, how the
// client gets the first one of a round as its own prompt and the others by its Stop hook,
// and what became of each.
//
// A round is one client. Its host calls, in this order:
//
//	Settle    decides about what an earlier round left in flight
//	Waiting   says whether there is work for a round
//	Command   is the client's arguments; it wires the hook for this client alone
//	First     puts the next entry in flight, and returns the client's prompt
//	Begin     right before the client is started
//	Started   or NotStarted, right after
//	Settle    once the client has ended, with what its stream told
//	Fates     what became of the entries
package queue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"heartbeat/inbox"
	"heartbeat/internal/claim"
	"heartbeat/internal/claude"
	"heartbeat/internal/claude/settings"
	"heartbeat/internal/cli"
	"heartbeat/internal/disk"
	"heartbeat/internal/machine"
	"heartbeat/internal/supervise/client"
	recovery "heartbeat/recover"
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
	Hook string // absolute path of heartbeat-stop, "" for who wires none
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
// [Queue.Put] and [Queue.HoldBack].
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
	// heldBack says that nothing is delivered any more: see [Queue.HoldBack].
	heldBack atomic.Bool
	// endedEntry is the entry that this round had in flight then, "" for none.
	endedEntry string
	// unheard are the entries that no hook told of, and hooksOff is what keeps hooks
	// from running, nil if nothing is known.
	unheard  map[string]bool
	hooksOff *settings.Off
	hooksRan bool // of a client that had one of them
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
	q := &Queue{o: o, box: box, unheard: map[string]bool{}}
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
	var err error
	if q.heldBack.Load() {
		err = q.transact(context.Background(), func(tx *inbox.Tx) error { tx.EndStop(); return tx.Commit() })
	}
	err = errors.Join(err, disk.Remove(filepath.Join(q.o.Dir, client.SettingsName)), q.lock.Release())
	q.lock = nil
	return err
}

// HoldBack has nothing delivered any more, until [Queue.Close] or the end of this process.
func (q *Queue) HoldBack(ctx context.Context) error {
	err := q.transact(ctx, func(tx *inbox.Tx) error {
		if err := tx.BeginStop(); err != nil {
			return err
		}
		return tx.Commit()
	})
	q.heldBack.Store(err == nil || q.heldBack.Load())
	return err
}

// Put appends an entry. An id that was used before appends nothing, and its receipt says
// where that entry is; without an id the entry gets one. A blank text is no entry: ok is
// false then.
func (q *Queue) Put(ctx context.Context, id, text string) (r inbox.Receipt, ok bool, err error) {
	if strings.TrimSpace(text) == "" {
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

// mark is what an inbox had counted when the session began.
type mark struct {
	Answered    int64 `json:"answered"`
	DeadLetters int64 `json:"dead_letters"`
	Dropped     int64 `json:"dropped"`
	Seq         int64 `json:"seq"` // number of the next commit: see [inbox.Tx.Seq]
}

func countsOf(n inbox.Totals) (m mark) {
	m.Answered, m.Dropped = n.Answered, n.Dropped
	for _, of := range n.DeadLetters {
		m.DeadLetters += of
	}
	return m
}

// loadMark reads the mark of an earlier host of the session.
func (q *Queue) loadMark() (m mark, err error) {
	if q.o.Own || q.o.Mark == "" {
		return m, nil
	}
	text, err := disk.ReadState(q.o.Mark, 4<<10)
	if errors.Is(err, fs.ErrNotExist) {
		return m, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &m)
	}
	if err != nil {
		return m, fmt.Errorf("read what was in the inbox when the session began: %s: %w", q.o.Mark, err)
	}
	return m, nil
}

// keepMark keeps a mark for the session, unless it has one.
func (q *Queue) keepMark() error {
	if q.o.Own || q.o.Mark == "" || q.mark != (mark{}) {
		return nil
	}
	v, err := q.box.View()
	if err != nil {
		return err
	}
	totals, err := v.Totals()
	if err = errors.Join(err, v.Close()); err != nil {
		return err
	}
	q.mark = countsOf(totals)
	if err := q.transact(context.Background(), func(tx *inbox.Tx) error { q.mark.Seq = tx.Seq(); return nil }); err != nil {
		return err
	}
	text, err := json.Marshal(q.mark)
	if err != nil {
		return err
	}
	if err := disk.Publish(q.o.Mark, append(text, '\n'), true); err != nil {
		return fmt.Errorf("keep what is in the inbox as the session begins: %w", err)
	}
	return nil
}

// Command is the command of the next round's client: the arguments given, with the settings that wire the hook and with a session that is known
// beforehand, if the arguments leave that open. resume is the session to go on with, in
// place of any that the arguments name; "" for none. It replaces the settings of an
// earlier round.
func (q *Queue) Command(args []string, resume string) ([]string, error) {
	start, err := machine.RandomName()
	if err != nil {
		return nil, err
	}
	s := client.Session{Env: q.o.Env, Dir: q.o.Cwd, Hook: q.o.Hook, Private: q.o.Dir, Resume: resume, Checks: q.o.Settings.Checks.Longest()}
	s.Command, s.Limits = slices.Concat([]string{claude.Command}, args), q.o.Settings.Limits
	s.Args = append([]string{
		"--inbox", q.box.Path(), "--launched", "--start", start, "--background-timeout", q.o.Background.String(),
	}, cli.HookArguments(q.o.Settings)...)
	command, session, off, err := client.Claude(s, true)
	if err != nil {
		return nil, err
	}
	q.hooksOff = off
	q.round = round{start: start, session: session, hooks: off == nil}
	return command, nil
}

// Environ is the environment of the session's client.
func (q *Queue) Environ(environ []string) []string {
	return client.Of(claude.Command, []string{claude.Command}).Environ(environ, q.box.Path(), q.o.Background)
}
