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
	"heartbeat/internal/hosting/folder"

	"github.com/spf13/pflag"
)

type gcFlags struct {
	shownFlags
	Older      cli.Span
	Unanswered bool
	DryRun     bool
}

var gcVerb = cli.Verb{
	Name:  "gc",
	Short: "finish dead sessions, and remove what old ones left",
	Long: `Finish the sessions whose host was killed, and remove temporary folders that have
outlived their session, and the folders of sessions that ended longer ago than
--older-than: inbox, results and state. Transcripts and logs stay. A folder is kept while
something would be lost with it: a report that the guild has not taken, or entries that
wait (--unanswered). Dead letters go with their folder.

Exit status: 0 done, also where there was nothing to do; 1 not all was done, and
the sentences say why.`,
	Example: `heartbeat-host gc --older-than 30d
heartbeat-host gc --older-than 7d --dry-run --json`,
	Build: func(f *pflag.FlagSet) cli.Action {
		o := gcFlags{Older: cli.Span(30 * 24 * time.Hour)}
		o.add(f)
		f.Var(&o.Older, "older-than", "remove the folders of sessions that ended at least this long ago")
		f.Lookup("older-than").DefValue = "30d"
		f.BoolVar(&o.Unanswered, "unanswered", false, "also remove folders whose entries wait")
		f.BoolVar(&o.DryRun, "dry-run", false, "only print what would be done")
		return actionOf(f, cli.NoArgs, func(s cli.Streams) error { return collect(&o, s) })
	},
}

// collected is what gc did with a session, as JSON.
type collected struct {
	SessionID string        `json:"sessionId"`
	Folder    string        `json:"folder"`
	What      string        `json:"what"`             // "finished", "removed", "cleared" or "kept"
	Status    folder.Status `json:"status,omitempty"` // as of "cancel"
	Why       string        `json:"why,omitempty"`
	sentence  string
}

func collect(o *gcFlags, s cli.Streams) error {
	found, problems := folders(&o.shownFlags)
	done := 0
	for _, f := range found {
		c, err := collectOne(f, o)
		problems = errors.Join(problems, err)
		if c == nil {
			continue
		}
		if o.DryRun && c.Why == "" {
			c.sentence = "not done: " + c.sentence
		}
		done++
		problems = errors.Join(problems, o.show(s, c, c.sentence))
	}
	if !o.DryRun {
		problems = errors.Join(problems, folder.Prune())
	}
	if done == 0 && problems == nil && !o.JSON {
		s.Note("nothing to do")
	}
	return problems
}

// collectOne removes or finishes one session, and returns what it did, nil for nothing.
func collectOne(f folder.Folder, o *gcFlags) (done *collected, err error) {
	h := &hosted{View: folder.View{Folder: f}}
	if err := h.reopen(); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	note := func(what, sentence string) {
		done = &collected{SessionID: h.ID, Folder: h.Dir(), What: what, Status: h.Status, sentence: sentence}
	}
	switch {
	case h.Unfinished():
		if !o.DryRun {
			_, err = h.finish()
		}
		if err == nil {
			note("finished", fmt.Sprintf("finish session %s, whose host was killed (%s)", h.ID, h.Status))
		}
	case h.Host != 0:
	case h.State.EndedAt != nil && time.Since(*h.State.EndedAt) < time.Duration(o.Older):
		var cleared bool
		if cleared, err = h.removeTemp(o.DryRun); cleared {
			note("cleared", "remove the temporary files of session "+h.ID)
		}
	default:
		before := time.Now().Add(-time.Duration(o.Older))
		if o.DryRun {
			err = h.MayPurge(before, o.Unanswered)
		} else {
			err = h.Purge(context.Background(), before, o.Unanswered)
		}
		if kept, is := errors.AsType[*folder.KeptError](err); is {
			note("kept", fmt.Sprintf("keep %s: %s", h.Dir(), kept.Reason))
			done.Why, err = kept.Reason, nil
		} else if err == nil {
			note("removed", fmt.Sprintf("remove %s (%s)", h.Dir(), h.Status))
		}
	}
	return done, err
}

func (h *hosted) removeTemp(dry bool) (cleared bool, err error) {
	there, err := disk.Exists(h.TempDir())
	if err != nil || !there || dry {
		return there, err
	}
	lock, err := h.Lock(context.Background())
	if err != nil {
		return false, err
	}
	err = errors.Join(os.RemoveAll(h.TempDir()), lock.Release()) // RemoveAll follows no links
	return err == nil, err
}
