package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"heartbeat/internal/hosting/folder"
	"heartbeat/internal/hosting/guild"
	"heartbeat/internal/hosting/store"
)

type Drained struct {
	Finished []string             `json:"finished,omitempty"` // sessions whose hosts had died
	Reports  []guild.DrainOutcome `json:"reports,omitempty"`
}

type DrainOptions struct {
	DB       string
	GuildURL string // for sessions whose own guild is unknown
	Refused  bool   // include reports that the guild refused before
}

// Drain finishes the sessions of dead hosts beside a database, imports what an older release has left, sends the reports
// unless another process does, and brings the guild's table up to date. It goes on after an error.
func Drain(ctx context.Context, o DrainOptions) (d Drained, err error) {
	var damage error
	db := store.In(folder.Root(o.DB), "")
	db.SetLog(func(text string) { damage = errors.Join(damage, errors.New(text)) })
	defer db.Close() // everything was committed
	mendErr := db.Mend(ctx)
	folders, err := folder.Beside(o.DB)
	err = errors.Join(mendErr, damage, err)
	views, _ := folder.Views(folders) // an unreadable session has not begun, or is being removed
	guilds := map[string]string{}
	for _, v := range views {
		if ctx.Err() != nil {
			return d, errors.Join(err, context.Cause(ctx))
		}
		f, s := v.Folder, v.State
		guilds[f.ID] = s.GuildToolURL
		if f.Holder() != 0 || s.Version == 0 && errors.Is(lost(f), ErrFinished) {
			continue
		}
		if s.TerminalReport.State != "" && s.Host == nil {
			err = errors.Join(err, f.TakeOver(ctx))
			continue
		}
		_, finishErr := Finish(ctx, f.Dir(), false)
		switch {
		case finishErr == nil:
			d.Finished = append(d.Finished, f.ID)
		case !errors.Is(finishErr, ErrHosted) && !errors.Is(finishErr, ErrFinished):
			err = errors.Join(err, finishErr)
		}
	}
	hasHost := func(id string) bool { return folder.Folder{ID: id, DB: o.DB}.Holder() != 0 }
	var drainErr error
	d.Reports, drainErr = guild.Drain(ctx, guild.DrainOptions{
		DB: o.DB, Refused: o.Refused,
		GuildURL: func(id string) string { return cmp.Or(guilds[id], o.GuildURL) },
		Busy:     hasHost,
	})
	if errors.Is(drainErr, guild.ErrDraining) { // that process sends the reports
		drainErr = nil
	}
	return d, errors.Join(err, drainErr, showBehind(ctx, db, "", hasHost))
}

// showBehind brings the guild's table up to date for the sessions that are not busy, or only for one, if id names it.
func showBehind(ctx context.Context, db *store.Store, id string, busy func(string) bool) (problems error) {
	behind, problems := db.Behind(ctx, id)
	for _, s := range behind {
		if busy == nil || !busy(s.ID) {
			problems = errors.Join(problems, db.Show(ctx, s.ID, s.GuildDB))
		}
	}
	return problems
}

// sweepOthers finishes dead hosts' sessions beside this one's database, and sends what they left, until this one ends.
func (h *host) sweepOthers(ctx context.Context) {
	d, err := Drain(ctx, DrainOptions{DB: h.lock.Folder.DB, GuildURL: h.Config.GuildToolURL})
	if err != nil && ctx.Err() == nil {
		h.log.linef("send what is unsent: %v", err)
	}
	for _, id := range d.Finished {
		h.log.linef("finished session %s, whose host had died", id)
	}
	for _, l := range d.Reports {
		h.log.line(strings.TrimSuffix(fmt.Sprintf("unsent report of session %s: %s: %s", l.SessionID, l.What, l.Why), ": "))
	}
}

// guardFor is how long a guardian tries to send what is left. Later the next host beside the database tries.
const guardFor = 7 * 24 * time.Hour

// FinishAll repeats [Finish] for a guardian whose host is dead, until nothing is left to send to the guild. args, after
// [FinishCommand], are the session's folder, the time between two attempts, and later the first one's time.
func FinishAll(args []string) error {
	if len(args) < 2 {
		return errors.New("name a session's folder, and the time between two attempts")
	}
	every, err := time.ParseDuration(args[1])
	if err != nil {
		return err
	}
	first := time.Now().Unix()
	if len(args) > 2 {
		if first, err = strconv.ParseInt(args[2], 10, 64); err != nil {
			return err
		}
		time.Sleep(every)
	}
	o, err := Finish(context.Background(), args[0], true)
	if isUnfinished(o, err) && time.Since(time.Unix(first, 0)) < guardFor {
		// A fresh process needs little memory to wait in.
		command := []string{os.Args[0], FinishCommand, args[0], args[1], strconv.FormatInt(first, 10)}
		return syscall.Exec("/proc/self/exe", command, os.Environ())
	}
	if errors.Is(err, ErrHosted) || errors.Is(err, ErrFinished) {
		return nil
	}
	return err
}

// isUnfinished reports whether another attempt may do more. [ErrHosted] counts: a record may name a host that has ended.
func isUnfinished(o Outcome, err error) bool {
	return o.Left || errors.Is(err, ErrUnkept) || errors.Is(err, ErrHosted) || Passes(err)
}
