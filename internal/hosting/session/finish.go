package session

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"heartbeat/inbox"
	inboxclaim "heartbeat/internal/claim"
	"heartbeat/internal/disk"
	"heartbeat/internal/hosting/folder"
	"heartbeat/internal/hosting/guild"
	"heartbeat/internal/hosting/queue"
	"heartbeat/internal/hosting/store"
	"heartbeat/internal/hosting/stream"
	"heartbeat/internal/machine"
	"heartbeat/internal/machine/guardian"
	"heartbeat/internal/words"
)

// ErrHosted means that a session needs no finisher: its host lives, or another process is finishing it.
var ErrHosted = errors.New("the session's host lives, or another process is finishing it")

// ErrUnkept means that the session's end could not be committed.
var ErrUnkept = errors.New("the session's end cannot be kept yet")

// ErrFinished means that nothing is left to do for a session.
var ErrFinished = errors.New("the session is finished")

// Finish completes the session of a dead host: it ends the session's processes, settles its entries, and reports. For a
// finished session it sends what the guild lacks. dir is the session's folder; once tries each call to the guild once.
// The error matches [ErrHosted] or [ErrFinished] if there is nothing to do, and [ErrUnkept] if another attempt may
// succeed. Any number of processes may call Finish at any time, also after a kill.
func Finish(ctx context.Context, dir string, once bool) (Outcome, error) {
	f := folder.Folder{ID: filepath.Base(dir), DB: filepath.Join(filepath.Dir(filepath.Dir(dir)), "db")}
	if err := folder.CheckID(f.ID); err != nil || folder.Root(f.DB) != filepath.Dir(dir) {
		return Outcome{}, fmt.Errorf("%s is no folder of a hosted session", dir)
	}
	var o Outcome
	lock, err := f.Lock(ctx)
	switch _, busy := errors.AsType[*folder.BusyError](err); {
	case busy:
		err = ErrHosted
	case errors.Is(err, fs.ErrNotExist):
		err = ErrFinished
	case err == nil:
		defer lock.Release() // the process's end would release it as well
		o, err = finishLocked(ctx, lock, once)
	}
	if err != nil {
		err = fmt.Errorf("finish session %s: %w", f.ID, err)
	}
	return o, err
}

// finishLocked finishes the session whose lock the caller holds.
func finishLocked(ctx context.Context, lock *folder.Lock, once bool) (Outcome, error) {
	f := lock.Folder
	s, err := lock.Read()
	if errors.Is(err, fs.ErrNotExist) {
		return Outcome{}, lost(f)
	}
	if err != nil {
		return Outcome{}, err
	}
	if filepath.Dir(s.DB) != filepath.Dir(f.DB) || s.SessionID != f.ID {
		return Outcome{}, fmt.Errorf("its record is that of session %s beside %s", s.SessionID, s.DB)
	}
	f.DB = s.DB
	if folder.IsHosted(s) {
		return Outcome{}, fmt.Errorf("%w: the lock of process %d was removed", ErrHosted, s.Host.PID)
	}
	if s.OwnInbox {
		s.Inbox = f.InboxPath() // the session's tools may have forged the record
	}
	e := &finisher{conclusion: conclusion{record: &record{lock: lock, state: *s}}, folder: f}
	e.log = &log{path: s.LogPath}
	if there, _ := disk.Exists(s.LogPath); there && filepath.Base(s.LogPath) == f.ID+".log" { // the path may be forged
		e.log, _ = openLog(filepath.Dir(s.LogPath), f.ID) // nothing depends on the log
	}
	defer e.log.close()
	lock.DB.SetLog(e.log.line)
	e.box = guild.OutboxOf(lock.DB, f.DB)
	if e.guild, err = guild.New(guild.Options{URL: s.GuildToolURL, SessionID: s.SessionID, Once: once}); err != nil {
		return Outcome{}, err
	}
	if _, err := e.box.Adopt(ctx); err != nil {
		e.log.line(err.Error())
	}
	if s.Host == nil && s.TerminalReport.State != "" {
		return e.sendRest(ctx)
	}
	return e.finish(ctx)
}

// lost returns the error of a session without a record: [ErrFinished] if the session had not begun.
func lost(f folder.Folder) error {
	if begun, err := disk.Exists(f.InboxPath()); err != nil || !begun {
		return ErrFinished
	}
	became := "removed"
	if aside := store.Damaged(folder.Root(f.DB)); aside != "" {
		became = "damaged, and is " + aside + " now"
	}
	return fmt.Errorf("its record was in the database that was %s: its end cannot be reported to its guild; "+
		"its prompts are in %s: remove %s once nothing of it is needed", became, f.InboxPath(), f.Dir())
}

// finisher stands in for a dead host.
type finisher struct {
	conclusion
	folder folder.Folder
}

// sendRest sends the guild of a finished session what the guild lacks.
func (e *finisher) sendRest(ctx context.Context) (Outcome, error) {
	s := e.snapshot()
	e.again = true
	o := Outcome{Decision: Decision{State: s.Status, Error: s.Error}, Delivered: s.TerminalReport.State == folder.Delivered}
	if !o.Delivered && s.TerminalReport.State != folder.Refused {
		o.Delivered = e.deliver(ctx)
	}
	if o.Left = e.showRest(context.Background()); o.Left {
		return o, nil
	}
	if s.Guardian != nil {
		e.change(func(s *folder.State) { s.Guardian = nil })
	}
	if err := e.failure(); err != nil {
		return o, fmt.Errorf("%w: %w", ErrUnkept, err)
	}
	return o, ErrFinished
}

func (e *finisher) finish(ctx context.Context) (o Outcome, err error) {
	s := e.snapshot()
	e.log.linef("the session's host is dead: process %d finishes for it", os.Getpid())
	if isMarkOf(s.Mark, s.SessionID) {
		if n := guardian.Kill(s.Mark); n > 0 {
			e.log.linef("%d processes of the session were killed", n)
		}
	}
	if o.Decision, err = e.conclude(ctx); err != nil {
		return o, fmt.Errorf("%w: %w", ErrUnkept, err)
	}
	o.Delivered = e.deliver(ctx)
	o.Left = e.showRest(context.Background())
	e.leaveRecord(o.Left)
	if err := e.failure(); err != nil {
		return o, fmt.Errorf("%w: %w", ErrUnkept, err)
	}
	return o, nil
}

// conclude decides the session's outcome, unless it is decided already, and commits it: see [conclusion.keep].
func (e *finisher) conclude(ctx context.Context) (d Decision, err error) {
	s := e.snapshot()
	r, decided, err := e.box.Report(ctx, s.SessionID)
	switch {
	case err != nil:
		return d, err
	case decided:
		d = Decision{State: folder.Status(r.Status), Error: r.Error}
		if !s.Status.Ended() {
			e.change(func(s *folder.State) { noteEnd(s, d) })
		}
		return d, nil
	case s.Status.Ended(): // the database was damaged since, or removed
		return e.keep(ctx, Decision{State: s.Status, Error: s.Error, Code: Facts{State: s}.code()})
	}
	if err := e.recount(ctx); err != nil {
		e.warn("the messages could not be read: " + err.Error())
	}
	switch err := e.settleEntries(ctx); {
	case machine.TakesNothing(err):
		return d, err
	case err != nil:
		e.warn("the entries could not be settled: " + err.Error())
	}
	short, cancel := context.WithTimeout(ctx, showWait)
	defer cancel()
	showErr := showBehind(short, e.lock.DB, s.SessionID, nil) // the guild may read the row once it has the report
	e.change(func(s *folder.State) {
		if s.Store = ""; showErr != nil {
			s.Store = "the transcript cannot be written to the guild's table, and is tried again (" + showErr.Error() + ")"
		}
	})
	s = e.snapshot()
	return e.keep(ctx, Decide(Facts{State: s, HostDied: s.Ended == ""}))
}

// recount adds the client's messages up again: the host recorded their sum only now and then.
func (e *finisher) recount(ctx context.Context) error {
	var t stream.Tally
	s := e.snapshot()
	last := int64(0)
	for m, err := range stream.ReadEndedTranscript(ctx, transcriptOf(e.lock.DB, e.folder, e.log.line), 1) {
		if err != nil {
			return err
		}
		last = max(last, m.N)
		if m.At.Before(s.HostedAt.Truncate(time.Millisecond)) {
			continue // from an earlier life
		}
		if parsed, ok := stream.Parse(m.Content); ok {
			t.Add(parsed, m.At)
		}
	}
	if s.Rounds > 1 { // a stored message does not name its client
		t.Usage, t.Cost, t.Result, t.SessionID = nil, nil, nil, ""
	}
	stored, count, err := e.lock.DB.Last(ctx, s.SessionID)
	if err != nil {
		return err
	}
	e.change(func(s *folder.State) {
		if s.Lost = stored - count + max(s.Messages-last, 0); s.Lost > 0 { // only the host's memory had them
			s.Warn(fmt.Sprintf("%s lost", words.Count(int(s.Lost), "message is", "messages are")))
		}
		s.Messages = max(s.Messages, last)
		if t.Messages > 0 {
			applyTally(s, &t)
		}
	})
	return nil
}

// settleEntries does for a dead host what the host does at its client's end.
func (e *finisher) settleEntries(ctx context.Context) error {
	s := e.snapshot()
	q, err := queue.Open(queueOptions(e.folder, s, e.log.line))
	if err != nil {
		return err
	}
	switch err := e.claim(ctx, q); {
	case errors.As(err, new(inboxclaim.BusyError)): // what is in flight now is not this session's
		e.log.linef("the entries are left to the process that works on %s now: %v", q.Path(), err)
		return e.count(q)
	case err != nil:
		return err
	}
	var seen queue.Exit // what the dead host has recorded
	if s.Cancel != nil {
		seen.Reason = inbox.ReasonCanceled
	}
	if s.Exit != nil && s.Result != nil && !s.Result.IsError && s.Result.Subtype == "success" && s.Result.NumTurns > 0 {
		seen.Turn = &queue.Turn{Reply: s.Output, At: s.Result.At}
	}
	return errors.Join(e.settle(ctx, q, seen), q.Close())
}
