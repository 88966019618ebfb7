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
	"heartbeat/internal/hosting/session"
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

// drainOnce finishes the dead sessions beside each database, and reports what waits
// there.
func drainOnce(ctx context.Context, o *verbs.Drain, s cli.Streams) error {
	dbs, problems := databases(o)
	left := 0
	for _, db := range dbs {
		d, err := session.Drain(ctx, session.DrainOptions{DB: db, Cwds: o.Cwds, GuildURL: o.Guild, Refused: o.Refused})
		for _, id := range d.Finished {
			s.Note("session %s, whose host was killed, is finished", id)
		}
		for _, letter := range d.Letters {
			if letter.What != deadletter.Sent {
				left++
			}
			problems = errors.Join(problems, tell(letter, o.JSON, s))
		}
		if !errors.Is(err, deadletter.ErrDraining) { // what another process does is done
			problems = errors.Join(problems, err)
		}
	}
	if left > 0 && ctx.Err() == nil {
		problems = errors.Join(problems, fmt.Errorf("%s still waiting", words.Count(left, "report is", "reports are")))
	}
	return problems
}

// databases are those of the sessions that the flags mean.
func databases(o *verbs.Drain) ([]string, error) {
	if o.DB != "" {
		if err := becomeOwner(o.DB); err != nil {
			return nil, err
		}
		db, err := filepath.Abs(o.DB)
		return []string{db}, err
	}
	all, err := folders(&o.Shown)
	dbs := map[string]bool{}
	for _, f := range all {
		if there, _ := f.Exists(); there {
			dbs[f.DB] = true
		}
	}
	return slices.Sorted(maps.Keys(dbs)), err
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
