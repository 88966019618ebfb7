// Package queue is the inbox of a hosted session. It makes entries of prompts, hands a round's first entry to the
// client as its prompt, and reports what became of each. The client's Stop hook delivers the other entries.
//
// A round is one client. Its host calls, in this order:
//
//	Settle    settles what an earlier round left in flight
//	Waiting   reports whether there is work for a round
//	Command   returns the client's arguments, and wires the hook for this client alone
//	First     puts the next entry in flight, and returns the client's prompt
//	Begin     right before the client is started
//	Started   or NotStarted, right after
//	Settle    once the client has ended, with what its output has shown
//	Fates     returns what became of the entries
package queue

import (
	"cmp"
	"context"
	"errors"
	"fmt"
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
	"heartbeat/internal/hosting/folder"
	"heartbeat/internal/machine"
	"heartbeat/internal/supervise/client"
	recovery "heartbeat/recover"
)

// lockWait is how long to wait for the inbox's own lock.
const lockWait = 30 * time.Second

// watchPoll is how often the queue is polled where the system sends no events.
const watchPoll = 5 * time.Second

type Options struct {
	Inbox string // path of the queue file
	// Own means that the inbox is the session's own, and all its entries are the session's. Open makes its directory.
	Own    bool
	Before *folder.Before // what a given inbox had counted when the session began, nil before that
	// Dir holds the settings that wire the hook, for this user alone: who can replace them runs commands as this user.
	Dir        string
	Hook       string // absolute path of heartbeat-stop, "" to wire none
	Cwd        string // the client's working directory
	Env        []string
	Settings   recovery.Settings
	Background time.Duration // how long an entry waits for tasks that its turn left running
	Warn       func(string)  // gets sentences about what was repaired; nil drops them
}

// Queue is the inbox of a session. Only [Queue.Put] and [Queue.HoldBack] are safe for concurrent use.
type Queue struct {
	o       Options
	box     *inbox.Inbox
	lock    *disk.Lock // nil before Claim; Lost needs it after Close
	claimed bool
	before  *folder.Before // nil for a session that has not begun
	round   round          // of the present client, or the last one
	// heldBack means that delivery has stopped: see [Queue.HoldBack].
	heldBack atomic.Bool

	// Of the round settled last:
	ended      string // its session
	endedEntry string // the entry in flight at its end, "" for none
	over       *Over  // the limit that ended its client

	unreported map[string]bool // entries whose answer no hook reported
	hooksOff   *settings.Off   // what keeps hooks from running, nil if nothing is known
	hooksRan   bool            // a hook of a client with an unreported entry has run
}

type round struct {
	start   string // the round's name, which its hook has too
	session string // "" if not known beforehand
	seq     int64  // number of the first commit that may be this round's, 0 before it
	hooks   bool   // nothing is known to keep hooks from running
}

// Open opens the inbox without changing it, so that a finisher can open the inbox of a dead session.
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
	q := &Queue{o: o, box: box, unreported: map[string]bool{}, before: o.Before}
	if o.Own {
		q.before = &folder.Before{}
	}
	return q, nil
}

// Watch returns a watcher, which signals every commit of another process.
func (q *Queue) Watch() *inbox.Watcher { return q.box.Watch(watchPoll) }

// Path returns the absolute path of the queue file.
func (q *Queue) Path() string { return q.box.Path() }

// Claim keeps launchers and other hosts off the inbox until [Queue.Close]. The error is a [claim.BusyError]
// if another process works on the inbox, or refuses an inbox whose state other users could forge.
func (q *Queue) Claim(ctx context.Context) (err error) {
	if q.lock, err = claim.Take(q.box); err != nil {
		return err
	}
	q.claimed = true
	if err = claim.CheckRights(q.box, "", q.o.Warn); err == nil {
		err = claim.CheckFree(ctx, q.box)
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

// Lost is [claim.Lost] of this inbox, also after [Queue.Close].
func (q *Queue) Lost() error { return claim.Lost(q.box, q.lock) }

// Close releases the inbox and removes the settings. Before [Queue.Claim] it does nothing: they are the host's.
func (q *Queue) Close() error {
	if !q.claimed {
		return nil
	}
	var err error
	if q.heldBack.Load() && q.Lost() == nil {
		err = q.transact(context.Background(), func(tx *inbox.Tx) error { tx.Holds().EndStop(); return tx.Commit() })
	}
	err = errors.Join(err, disk.Remove(filepath.Join(q.o.Dir, client.SettingsName)), q.lock.Release())
	q.claimed = false
	return err
}

// HoldBack stops delivery until [Queue.Close] or the end of this process.
func (q *Queue) HoldBack(ctx context.Context) error {
	err := q.transact(ctx, func(tx *inbox.Tx) error {
		if err := tx.Holds().BeginStop(); err != nil {
			return err
		}
		return tx.Commit()
	})
	q.heldBack.Store(err == nil || q.heldBack.Load())
	return err
}

// Put appends an entry. With a used ID it appends nothing, and the receipt has the place of that ID's entry;
// without an ID the entry gets one. With a blank text it does nothing, and ok is false.
func (q *Queue) Put(ctx context.Context, id, text string) (r inbox.Receipt, ok bool, err error) {
	if strings.TrimSpace(text) == "" {
		return r, false, nil
	}
	if err := q.Lost(); err != nil {
		return r, false, err
	}
	r, err = q.box.Append(ctx, inbox.Message{ID: id, Text: text}, cli.DefaultSettle)
	for _, w := range r.Warnings {
		q.o.Warn(w)
	}
	return r, err == nil, err
}

// transact runs a transaction and passes on its warnings. If the inbox is lost, what has its name now is not touched.
func (q *Queue) transact(ctx context.Context, do func(*inbox.Tx) error) (err error) {
	if err := q.Lost(); err != nil {
		return err
	}
	tx, err := q.box.Begin(ctx)
	if err != nil {
		return cmp.Or(q.Lost(), err)
	}
	defer func() {
		for _, w := range tx.Warnings() {
			q.o.Warn(w)
		}
		err = errors.Join(err, tx.Close())
	}()
	return do(tx)
}

// asker returns this host as package recover sees it: the prompt is the host's until its client is started.
func (q *Queue) asker() recovery.Asker {
	return recovery.Asker{
		Settings: q.o.Settings, Box: q.box, Client: inbox.Process{PID: os.Getpid()},
		Note: func(format string, args ...any) { q.o.Warn(fmt.Sprintf(format, args...)) },
	}
}

func countsOf(n inbox.Totals) (b folder.Before) {
	b.Answered, b.Dropped = n.Answered, n.Dropped
	for _, of := range n.DeadLetters {
		b.DeadLetters += of
	}
	return b
}

// CountBefore returns what a given inbox has counted when a session begins with it.
func (q *Queue) CountBefore(ctx context.Context) (b folder.Before, err error) {
	v, err := q.box.View()
	if err != nil {
		return b, err
	}
	totals, err := v.Totals()
	if err = errors.Join(err, v.Close()); err != nil {
		return b, err
	}
	b = countsOf(totals)
	err = q.transact(ctx, func(tx *inbox.Tx) error { b.Seq = tx.Seq(); return nil })
	q.before = &b
	return b, err
}

// Command returns the command of the next round's client: the given arguments, with the settings that wire the hook
// and, unless the arguments name a session, a new session's ID. resume is the session to continue instead of one that
// the arguments name, "" for none. The settings replace those of an earlier round.
func (q *Queue) Command(args []string, resume string) ([]string, error) {
	start, err := machine.RandomName()
	if err != nil {
		return nil, err
	}
	s := client.Session{Env: q.o.Env, Dir: q.o.Cwd, Hook: q.o.Hook, Private: q.o.Dir, Resume: resume, Checks: q.o.Settings.Checks.Longest()}
	s.Command, s.Limits = slices.Concat([]string{claude.Command}, args), q.o.Settings.Limits
	s.Args = append([]string{
		"--inbox", q.box.Path(), "--launched", "--lock", q.box.LockIdentity(), "--start", start, "--background-timeout", q.o.Background.String(),
	}, cli.HookArguments(q.o.Settings)...)
	command, session, off, err := client.Claude(s, true)
	if err != nil {
		return nil, err
	}
	q.hooksOff = off
	q.round = round{start: start, session: session, hooks: off == nil}
	return command, nil
}

func (q *Queue) Environ(environ []string) []string {
	return client.Of(claude.Command, []string{claude.Command}).Environ(environ, q.box.Path(), q.o.Background)
}
