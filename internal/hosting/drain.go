package hosting

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"time"

	"heartbeat/internal/cli"
	"heartbeat/internal/hosting/deadletter"
	"heartbeat/internal/hosting/folder"
	"heartbeat/internal/hosting/verbs"
	"heartbeat/internal/words"
)

func drain(o *verbs.Drain, s cli.Streams) error {
	ctx, stop, status := untilSignal()
	defer stop()
	if o.Once {
		return status(drainOnce(ctx, o, s))
	}
	for {
		if err := drainOnce(ctx, o, s); err != nil && ctx.Err() == nil {
			s.Note("%v", err)
		}
		select {
		case <-time.After(o.Every):
		case <-ctx.Done():
			return status(ctx.Err())
		}
	}
}

// drainOnce finishes the dead sessions, and reports what is left beside each database.
func drainOnce(ctx context.Context, o *verbs.Drain, s cli.Streams) error {
	all, problems := sessions(&o.Shown)
	problems = errors.Join(problems, finishDead(all, s))
	dbs := map[string]bool{}
	for _, h := range all {
		dbs[h.DB] = true
	}
	if o.DB != "" {
		db, err := filepath.Abs(o.DB)
		if err != nil {
			return err
		}
		dbs[db] = true
	}
	left := 0
	for _, db := range slices.Sorted(maps.Keys(dbs)) {
		outcomes, err := deadletter.Drain(ctx, drainOptions(db, o))
		for _, outcome := range outcomes {
			if outcome.What != deadletter.Sent {
				left++
			}
			problems = errors.Join(problems, tell(outcome, o.JSON, s))
		}
		if err != nil && !errors.Is(err, deadletter.ErrDraining) {
			problems = errors.Join(problems, err)
		}
	}
	if left > 0 && ctx.Err() == nil {
		problems = errors.Join(problems, fmt.Errorf("%s still waiting", words.Count(left, "report is", "reports are")))
	}
	return problems
}

func drainOptions(db string, o *verbs.Drain) deadletter.Options {
	look := func(session string) *hosted {
		f, err := folder.At(db, session)
		if err != nil {
			return nil
		}
		h, err := open(f)
		if err != nil {
			return nil
		}
		return h
	}
	return deadletter.Options{
		DB: db, Cwds: o.Cwds, Refused: o.Refused,
		GuildURL: func(session string) string {
			if h := look(session); h != nil {
				return h.State.GuildToolURL
			}
			return o.Guild
		},
		Hosted: func(session string) bool { return look(session) != nil },
		Busy: func(session string) bool {
			f, err := folder.At(db, session)
			return err == nil && f.Holder() != 0
		},
	}
}

// tell prints what became of a letter.
func tell(o deadletter.Outcome, asJSON bool, s cli.Streams) error {
	if asJSON {
		return printJSON(s, o)
	}
	what := fmt.Sprintf("the %s of session %s", kinds[o.Kind], o.SessionID)
	if o.SessionID == "" {
		what = o.Path
	}
	line := what + " was taken by the guild"
	switch o.What {
	case deadletter.Sent:
		if o.As != "" && o.As != o.Status {
			line += " as " + o.As
		}
	case deadletter.Refused:
		line = what + " is refused by the guild, and stays: " + o.Why
	case deadletter.Left:
		line = what + " stays for the next time: " + o.Why
	default:
		line = what + " cannot be sent: " + o.Why
	}
	_, err := fmt.Fprintln(s.Out, words.Line(line))
	return err
}

// kinds are the reports as people call them.
var kinds = map[deadletter.Kind]string{deadletter.Running: "start", deadletter.Record: "end"}

// finishDead finishes the sessions whose host was killed.
func finishDead(all []*hosted, s cli.Streams) (problems error) {
	for _, h := range all {
		if !h.unfinished {
			continue
		}
		status, err := h.finish()
		if err != nil {
			problems = errors.Join(problems, err)
			continue
		}
		s.Note("session %s, whose host was killed, is finished: %s", h.ID, status)
	}
	return problems
}
