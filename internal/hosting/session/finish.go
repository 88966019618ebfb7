package session

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"heartbeat/internal/disk"
	"heartbeat/internal/hosting/deadletter"
	"heartbeat/internal/hosting/folder"
	"heartbeat/internal/hosting/guild"
	"heartbeat/internal/hosting/process"
	"heartbeat/internal/hosting/stream"
	"heartbeat/internal/hosting/transcript"
)

// ErrHosted says that a session needs nobody to finish it: its host lives, or somebody
// else finishes it right now.
var ErrHosted = errors.New("the session's host lives, or somebody finishes it right now")

// ErrFinished says that nothing is left to do for a session.
var ErrFinished = errors.New("the session is finished")

// Finish does what the dead host of a session left undone: it ends what is left of the
// session, settles its entries, and reports. dir is the session's folder. The error
// matches [ErrHosted] or [ErrFinished] if there is nothing to do. It may be called at
// any time, by any number of processes, and after a kill again.
func Finish(ctx context.Context, dir string) (Outcome, error) {
	f := folder.Folder{ID: filepath.Base(dir), DB: filepath.Join(filepath.Dir(filepath.Dir(dir)), "db")}
	if err := folder.CheckID(f.ID); err != nil || folder.Root(f.DB) != filepath.Dir(dir) {
		return Outcome{}, fmt.Errorf("%s is no folder of a hosted session", dir)
	}
	lock, err := f.Lock(ctx)
	var busy *folder.BusyError
	switch {
	case errors.As(err, &busy):
		return Outcome{}, fmt.Errorf("finish session %s: %w", f.ID, ErrHosted)
	case errors.Is(err, fs.ErrNotExist):
		return Outcome{}, fmt.Errorf("finish session %s: %w", f.ID, ErrFinished)
	case err != nil:
		return Outcome{}, fmt.Errorf("finish session %s: %w", f.ID, err)
	}
	defer lock.Release() // the process's end would release it as well
	o, err := finishLocked(ctx, lock)
	if err != nil {
		err = fmt.Errorf("finish session %s: %w", f.ID, err)
	}
	return o, err
}

// finishLocked finishes the session whose lock the caller holds.
func finishLocked(ctx context.Context, lock *folder.Lock) (Outcome, error) {
	f := lock.Folder()
	s, err := f.Read()
	if errors.Is(err, fs.ErrNotExist) {
		return Outcome{}, ErrFinished // it had not begun, and its caller knows
	}
	if err != nil {
		return Outcome{}, err
	}
	if filepath.Dir(s.DB) != filepath.Dir(f.DB) || s.SessionID != f.ID {
		return Outcome{}, fmt.Errorf("its record is that of session %s beside %s", s.SessionID, s.DB)
	}
	f.DB = s.DB
	if s.Host == nil && s.TerminalReport.State != "" {
		return Outcome{Decision: Decision{State: s.Status, Error: s.Error}}, ErrFinished
	}
	if folder.IsHosted(s) {
		return Outcome{}, fmt.Errorf("%w: the lock of process %d was removed", ErrHosted, s.Host.PID)
	}
	if s.OwnInbox {
		s.Inbox = f.InboxPath() // the session's tools may have forged the record
	}
	e := &finisher{record: &record{lock: lock, state: *s}, folder: f}
	e.log = &log{path: s.LogPath}
	if there, _ := disk.Exists(s.LogPath); there && filepath.Base(s.LogPath) == f.ID+".log" { // the path may be forged
		e.log, _ = openLog(filepath.Dir(s.LogPath), f.ID) // nothing depends on the log
	}
	defer e.log.close()
	return e.finish(ctx)
}

// finisher stands in for a dead host.
type finisher struct {
	*record
	folder folder.Folder
	log    *log
	each   []guild.Entry
}

func (e *finisher) finish(ctx context.Context) (Outcome, error) {
	s := e.snapshot()
	e.log.linef("the session's host is dead: process %d finishes for it", os.Getpid())
	if isMarkOf(s.Mark, s.SessionID) {
		if n := process.Sweep(s.Mark); n > 0 {
			e.log.linef("%d processes of the session were killed", n)
		}
	}
	client, err := guild.New(guild.Options{URL: s.GuildToolURL, SessionID: s.SessionID})
	if err != nil {
		return Outcome{}, err
	}
	if err := transcript.Recover(ctx, e.store()); err != nil {
		e.log.line(notStored(err))
		e.change(func(s *folder.State) { addWarning(s, notStored(err)) })
	}
	c := &conclusion{record: e.record, box: deadletter.Beside(s.DB), guild: client, log: e.log, transcript: e.transcript}
	d := Decision{State: s.Status, Error: s.Error}
	var unkept *guild.Body
	if s.TerminalReport.State == "" {
		d, unkept = e.conclude(ctx, c)
	}
	delivered := s.TerminalReport.State == folder.Delivered
	if !delivered {
		delivered = c.deliver(ctx, unkept)
	}
	if err := errors.Join(clean(e.folder), removeMarkedPromptDir(e.snapshot())); err != nil {
		e.change(func(s *folder.State) { addWarning(s, err.Error()) })
	}
	e.change(func(s *folder.State) { s.Host, s.Guardian, s.Mark = nil, nil, "" })
	err = e.failure()
	if unkept != nil && !delivered {
		err = errors.Join(errors.New("the terminal report can neither be kept nor sent: is the disk full?"), err)
	}
	return Outcome{Decision: d, Delivered: delivered}, err
}

// conclude decides what the session came to, unless its host has said so already, and
// keeps the report: see [conclusion.keep].
func (e *finisher) conclude(ctx context.Context, c *conclusion) (Decision, *guild.Body) {
	if kept := e.kept(c.box); kept != nil {
		d := Decision{State: folder.Status(kept.Status), Error: kept.Error}
		e.change(func(s *folder.State) {
			now := time.Now().UTC()
			s.Status, s.Error, s.EndedAt, s.Client = d.State, d.Error, &now, nil
			s.TerminalReport = folder.Report{State: folder.Waiting}
		})
		return d, nil // it is in its file
	}
	if err := e.recount(ctx); err != nil {
		e.log.linef("the messages could not be read: %v", err)
		e.change(func(s *folder.State) { addWarning(s, "the messages could not be read: "+err.Error()) })
	}
	if err := e.settle(ctx); err != nil {
		e.log.linef("the entries could not be settled: %v", err)
		e.change(func(s *folder.State) { addWarning(s, "the entries could not be settled: "+err.Error()) })
	}
	c.each = e.each
	facts := factsOf(e.snapshot())
	facts.HostDied = facts.Ended == ""
	d := Decide(facts)
	return d, c.keep(d)
}

// recount adds up again what the client's messages said: the host noted that now and
// then only.
func (e *finisher) recount(ctx context.Context) error {
	var t stream.Tally
	s := e.snapshot()
	last := s.Messages
	for m, err := range transcript.ReadEnded(ctx, e.store(), 1) {
		if err != nil {
			return err
		}
		last = max(last, m.N)
		if m.At.Before(s.HostedAt.Truncate(time.Millisecond)) {
			continue // of a life before this one
		}
		if parsed, ok := stream.Parse(m.Content); ok {
			t.Add(parsed, m.At)
		}
	}
	if s.Rounds > 1 { // which messages are of which client is not stored
		t.Usage, t.Cost, t.Result, t.SessionID = nil, nil, nil, ""
	}
	e.change(func(s *folder.State) {
		s.Messages = last
		if t.Messages > 0 {
			tallied(s, &t)
		}
	})
	return nil
}

// kept is the terminal report that the host has written itself, nil if there is none.
func (e *finisher) kept(box deadletter.Box) *guild.Envelope {
	f, err := disk.OpenRead(box.Path(deadletter.Record, e.folder.ID))
	if err != nil {
		return nil
	}
	defer f.Close() // it was only read
	kept, err := guild.ReadEnvelope(io.NewSectionReader(f, 0, f.Info().Size))
	if err != nil || kept.SessionID != e.folder.ID || !folder.Status(kept.Status).Ended() {
		return nil // it is replaced
	}
	return kept
}

func (e *finisher) store() transcript.Options {
	s := e.snapshot()
	return transcript.Options{DB: s.DB, Spool: e.folder.SpoolPath(), SessionID: s.SessionID, SpoolMax: s.SpoolMax, Log: e.log.line}
}

// transcript writes what the database and the spool have of the conversation.
func (e *finisher) transcript(w io.Writer) error {
	store := transcript.Open(e.store())
	ctx, cancel := within(closeWait)
	defer cancel()
	return errors.Join(store.Transcript(context.Background(), w), store.Close(ctx))
}
