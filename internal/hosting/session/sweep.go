package session

import (
	"context"
	"errors"
	"fmt"

	"heartbeat/internal/disk"
	"heartbeat/internal/hosting/deadletter"
	"heartbeat/internal/hosting/folder"
	"heartbeat/internal/hosting/guild"
	"heartbeat/internal/hosting/transcript"
)

// Drained is what [Drain] did.
type Drained struct {
	Finished []string             `json:"finished,omitempty"` // sessions whose hosts had died
	Letters  []deadletter.Outcome `json:"letters,omitempty"`
}

// DrainOptions say what to drain.
type DrainOptions struct {
	DB       string
	Cwds     []string // folders below which the babysitter left letters
	GuildURL string   // for sessions whose own guild is not known
	Refused  bool     // letters too that the guild refused before
}

// Drain finishes the sessions beside a database whose hosts are dead, stores the
// messages that the database did not take, and then sends the dead letters beside it. The error joins what went wrong; the rest was done.
func Drain(ctx context.Context, o DrainOptions) (d Drained, err error) {
	folders, err := folder.Beside(o.DB)
	known := map[string]*folder.State{}
	for _, f := range folders {
		if ctx.Err() != nil {
			return d, errors.Join(err, context.Cause(ctx))
		}
		s, readErr := f.Read()
		if readErr != nil {
			continue // it has not begun, or somebody removes it
		}
		known[f.ID] = s
		if f.Holder() != 0 {
			continue
		}
		if s.TerminalReport.State != "" && s.Host == nil {
			err = errors.Join(err, storeSpool(ctx, f, s))
			continue
		}
		_, finishErr := Finish(ctx, f.Dir())
		switch {
		case finishErr == nil:
			d.Finished = append(d.Finished, f.ID)
		case !errors.Is(finishErr, ErrHosted) && !errors.Is(finishErr, ErrFinished):
			err = errors.Join(err, finishErr)
		}
	}
	letters, drainErr := deadletter.Drain(ctx, deadletter.Options{
		DB: o.DB, Cwds: o.Cwds, Refused: o.Refused,
		GuildURL: func(id string) string {
			if s := known[id]; s != nil {
				return s.GuildToolURL
			}
			return o.GuildURL
		},
		Hosted: func(id string) bool { return known[id] != nil || hosted(o.DB, id) },
		Busy:   func(id string) bool { return busy(o.DB, id) },
	})
	d.Letters = letters
	for _, l := range letters {
		if l.What == deadletter.Sent && l.Kind == deadletter.Record && l.Cwd == "" {
			noteSent(ctx, o.DB, l)
		}
	}
	return d, errors.Join(err, drainErr)
}

// hosted reports whether a session has a folder by now.
func hosted(db, id string) bool {
	f, err := folder.At(db, id)
	if err != nil {
		return false
	}
	there, err := f.Exists()
	return there || err != nil
}

// storeSpool stores the messages that a session's database did not take while it ran.
func storeSpool(ctx context.Context, f folder.Folder, s *folder.State) error {
	if there, err := disk.Exists(f.SpoolPath()); err != nil || !there {
		return err
	}
	lock, err := f.Lock(ctx)
	if err != nil {
		return nil // somebody else works on it
	}
	defer lock.Release() // the process's end would release it as well
	return transcript.Recover(ctx, transcript.Options{DB: s.DB, Spool: f.SpoolPath(), SessionID: f.ID, SpoolMax: s.SpoolMax})
}

// busy reports whether a session's host lives.
func busy(db, id string) bool {
	f, err := folder.At(db, id)
	return err == nil && f.Holder() != 0
}

// noteSent writes into a session's record that the guild has its report.
func noteSent(ctx context.Context, db string, l deadletter.Outcome) {
	f, err := folder.At(db, l.SessionID)
	if err != nil {
		return
	}
	lock, err := f.Lock(ctx)
	if err != nil {
		return // only status shows it
	}
	defer lock.Release() // the process's end would release it as well
	if s, err := f.Read(); err == nil {
		fared(&s.TerminalReport, guild.Answer{As: l.As}, nil)
		_ = lock.Write(s) // only status shows it
	}
}

// sweepOthers finishes the sessions of dead hosts beside this one's database, and
// sends what others could not. It is done beside the session, and ends with it.
func (h *host) sweepOthers(ctx context.Context) {
	d, err := Drain(ctx, DrainOptions{DB: h.lock.Folder().DB, Cwds: []string{h.Config.Cwd}, GuildURL: h.Config.GuildToolURL})
	if err != nil && ctx.Err() == nil && !errors.Is(err, deadletter.ErrDraining) {
		h.log.linef("drain the dead letters: %v", err)
	}
	for _, id := range d.Finished {
		h.log.linef("finished session %s, whose host had died", id)
	}
	for _, l := range d.Letters {
		h.log.line(fmt.Sprintf("dead letter of session %s: %s %s", l.SessionID, l.What, l.Why))
	}
}
