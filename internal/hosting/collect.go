package hosting

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"heartbeat/internal/cli"
	"heartbeat/internal/disk"
	"heartbeat/internal/hosting/deadletter"
	"heartbeat/internal/hosting/folder"
	"heartbeat/internal/hosting/transcript"
	"heartbeat/internal/hosting/verbs"
	"heartbeat/internal/words"
)

// What gc does with a session.
const (
	wasFinished = "finished" // its host was killed
	wasRemoved  = "removed"  // its folder is gone
	wasCleared  = "cleared"  // its temporary files are gone
	wasKept     = "kept"     // it is old, and something would be lost
)

// collected is what gc prints with --json.
type collected struct {
	SessionID string        `json:"sessionId"`
	Folder    string        `json:"folder"`
	What      string        `json:"what"`
	Status    folder.Status `json:"status,omitempty"`
	Why       string        `json:"why,omitempty"` // it was kept
}

func (c collected) tell(o *verbs.Collect, s cli.Streams) error {
	if o.JSON {
		return printJSON(s, c)
	}
	line := c.sentence()
	if o.DryRun && c.What != wasKept {
		line = "not done: " + line
	}
	_, err := fmt.Fprintln(s.Out, words.Line(line))
	return err
}

func (c collected) sentence() string {
	switch c.What {
	case wasFinished:
		return fmt.Sprintf("finish session %s, whose host was killed (%s)", c.SessionID, c.Status)
	case wasRemoved:
		return fmt.Sprintf("remove %s (%s)", c.Folder, c.Status)
	case wasCleared:
		return fmt.Sprintf("remove the temporary files of session %s", c.SessionID)
	}
	return fmt.Sprintf("keep %s: %s", c.Folder, c.Why)
}

func collect(o *verbs.Collect, s cli.Streams) error {
	found, problems := folders(&o.Shown)
	done := 0
	for _, f := range found {
		all, err := collectOne(f, o)
		problems = errors.Join(problems, err)
		for _, c := range all {
			done++
			problems = errors.Join(problems, c.tell(o, s))
		}
	}
	if index, err := folder.UserIndex(); err == nil && !o.DryRun {
		_, err := index.Prune()
		problems = errors.Join(problems, err)
	}
	if done == 0 && problems == nil && !o.JSON {
		s.Note("nothing to do")
	}
	return problems
}

// collectOne does what is to be done about one session.
func collectOne(f folder.Folder, o *verbs.Collect) (done []collected, err error) {
	h, err := open(f)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	note := func(what string) {
		done = append(done, collected{SessionID: h.ID, Folder: h.Dir(), What: what, Status: h.status})
	}
	switch {
	case h.unfinished:
		if !o.DryRun {
			_, err = h.finish()
		}
		if err == nil {
			note(wasFinished)
		}
	case h.worked:
	case h.State.EndedAt != nil && time.Since(*h.State.EndedAt) < o.Older:
		var cleared bool
		if cleared, err = h.clear(o.DryRun); cleared {
			note(wasCleared)
		}
	default:
		var kept *folder.KeptError
		if err = h.remove(o); errors.As(err, &kept) {
			note(wasKept)
			done[0].Why, err = kept.Reason, nil
		} else if err == nil {
			note(wasRemoved)
		}
	}
	return done, err
}

// clear removes temporary files that have outlived their session.
func (h *hosted) clear(dry bool) (cleared bool, err error) {
	there, err := disk.Exists(h.TempDir())
	if err != nil || !there || dry {
		return there, err
	}
	lock, err := h.Lock(context.Background())
	if err != nil {
		return false, err
	}
	err = errors.Join(os.RemoveAll(h.TempDir()), lock.Release()) // it follows no links
	return err == nil, err
}

// remove removes the session's folder. While a report of the session waits for its
// guild, the folder says which guild that is.
func (h *hosted) remove(o *verbs.Collect) error {
	waits, err := disk.Exists(deadletter.Beside(h.DB).Path(deadletter.Record, h.ID))
	switch {
	case err != nil:
		return err
	case waits:
		return &folder.KeptError{ID: h.ID, Reason: "its guild was not told of its end yet: " + words.Shell(command, "drain-dlq", "--once") + " tells it"}
	case o.DryRun:
		return h.MayPurge(time.Now().Add(-o.Older), o.Unanswered)
	}
	if err := h.flush(); err != nil {
		return &folder.KeptError{ID: h.ID, Reason: "the database does not take messages that are still in " + h.SpoolPath() + ": " + err.Error()}
	}
	return h.Purge(context.Background(), time.Now().Add(-o.Older), o.Unanswered)
}

// flush moves what is in the spool to the database, and removes the spool.
func (h *hosted) flush() error {
	lock, err := h.Lock(context.Background())
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), askTimeout)
	defer cancel()
	err = transcript.Recover(ctx, transcript.Options{DB: h.DB, Spool: h.SpoolPath(), SessionID: h.ID})
	if err == nil {
		err = disk.Remove(h.SpoolPath())
	}
	return errors.Join(err, lock.Release())
}
