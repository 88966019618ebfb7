package babysitter

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/tidwall/gjson"

	"heartbeat/internal/disk"
	runs "heartbeat/orchestrate/run"
)

// Repaired is what a repair did to a journal, in events.
type Repaired struct {
	Kept, Dropped int
	// Backup is the folder that the journal was moved to.
	Backup string
}

// Repair mends a damaged journal: it drops what cannot be read, and numbers the rest anew. A dropped request comes
// again under another effect id. An effect whose result was dropped waits again. Repair writes to an intact run, too.
func (c *CLI) Repair(ctx context.Context, of *runs.Run) (done Repaired, err error) {
	r := run{of.Dir(), of.ID()}
	err = c.underLock(ctx, r, func() (err error) {
		done, err = c.repair(ctx, r)
		return err
	})
	return done, err
}

// repair is [CLI.Repair] for a caller that may write to the run.
func (c *CLI) repair(ctx context.Context, r run) (Repaired, error) {
	// The command does not take the CLI's own lock. ErrLocked makes the caller wait for the lock's holder.
	if holder, _ := r.cliHolder(); holder > 0 && !gone(holder) { // an unreadable lock holds nobody off
		return Repaired{}, fault(ErrLocked, "repair the journal of the run %s: process %d works on it", r.dir, holder)
	}
	a, err := c.call(ctx, request{
		doing: "repair the journal of the run " + r.dir, command: "run:repair-journal", args: []string{r.dir, "--json"}, dir: Project(r.dir), timeout: repairTimeout,
		answer: answerWhere(func(a gjson.Result) bool { return a.Get("repaired").Bool() }),
	})
	events := func(what string) int { return int(a.Get("journal." + what).Int()) }
	return Repaired{
		Kept: events("keptEvents"), Dropped: events("droppedCorrupt") + events("droppedRequested") + events("droppedResolved"), Backup: a.Get("backupDir").String(),
	}, err
}

func (r run) journal() string { return filepath.Join(r.dir, "journal") }

// finishRepair finishes a repair that was killed between its last two steps: the journal was moved aside, and the
// mended journal is not yet in its place. The CLI would find no events, and request everything again.
func (r run) finishRepair(c *CLI) error {
	if there, err := disk.Exists(r.journal()); there || err != nil {
		return err
	}
	mended := ""
	if aside, _ := fs.Glob(os.DirFS(r.dir), "journal.bak.*"); len(aside) > 0 {
		mended = filepath.Join(r.dir, "journal.repaired"+filepath.Ext(aside[len(aside)-1])) // of the same moment
	}
	if there, err := disk.Exists(mended); !there || err != nil {
		return fmt.Errorf("work on the run %s: it has no folder journal: restore it from a backup", r.dir)
	}
	c.note("the run %s: finished the repair of its journal, which was interrupted", r.dir)
	if err := os.Rename(mended, r.journal()); err != nil {
		return fmt.Errorf("finish the repair of the run %s: %w", r.dir, err)
	}
	return nil
}

// Reopen removes an effect's result, so that the effect waits for another one. The CLI has no command for that, but in a
// journal without the result's event the effect waits, and a repair accepts such a journal. The event is kept in the
// run's folder.
func (c *CLI) Reopen(ctx context.Context, of *runs.Run, effectID string) error {
	r := run{of.Dir(), of.ID()}
	if err := checkEffectID(effectID); err != nil {
		return err
	}
	moved := false
	return c.underLock(ctx, r, func() error { // may be called several times
		if !moved {
			if err := r.setResultAside(effectID); err != nil {
				return fmt.Errorf("have effect %s of the run %s wait again: %w", effectID, r.dir, err)
			}
			moved = true
		}
		_, err := c.repair(ctx, r)
		return err
	})
}

// maxEvent is more than any event needs, in bytes.
const maxEvent = 64 << 20

// setResultAside moves the event of an effect's result out of the journal.
func (r run) setResultAside(effectID string) error {
	names, err := os.ReadDir(r.journal())
	for _, n := range names {
		if !strings.HasSuffix(n.Name(), ".json") {
			continue
		}
		path := filepath.Join(r.journal(), n.Name())
		content, err := disk.ReadFile(path, maxEvent)
		if err != nil {
			return err
		}
		if e := gjson.ParseBytes(content); e.Get("type").Str == "EFFECT_RESOLVED" && e.Get("data.effectId").Str == effectID {
			return os.Rename(path, filepath.Join(r.dir, "reopened."+n.Name()))
		}
	}
	return errors.Join(err, errors.New("its journal has no result for it"))
}
