package babysitter

import (
	"context"
	"fmt"
)

// Repaired is what a repair did to a journal, in events.
type Repaired struct {
	Kept, DroppedCorrupt, DroppedRequested, DroppedResolved int
	// Backup is the folder that the journal was moved to.
	Backup string
}

// Repair mends a damaged journal ([ErrJournal]): what cannot be read is dropped and the
// rest numbered anew. A dropped request comes again under another effect id; an effect
// whose result was dropped waits for it again. It writes to the run, also where nothing is
// wrong with it.
func (c *CLI) Repair(ctx context.Context, runDir string) (Repaired, error) {
	r, err := runIn(runDir)
	if err != nil {
		return Repaired{}, err
	}
	var done Repaired
	err = c.writing(ctx, r, func() (err error) {
		done, err = c.repair(ctx, r)
		return err
	})
	return done, err
}

// repair is [CLI.Repair] for a caller that may write to the run.
func (c *CLI) repair(ctx context.Context, r run) (Repaired, error) {
	// The command does not take the CLI's own lock, so its holder is waited for here.
	if holder := r.heldBy(); holder > 0 {
		return Repaired{}, &problem{kind: ErrLocked, sentence: fmt.Sprintf("repair the journal of the run %s: process %d works on it", r.dir, holder)}
	}
	type answer struct {
		Repaired  bool
		BackupDir string
		Journal   struct{ KeptEvents, DroppedCorrupt, DroppedRequested, DroppedResolved int }
	}
	a, err := call(ctx, c, request{
		doing: "repair the journal of the run " + r.dir, command: "run:repair-journal", args: []string{r.dir, "--json"}, dir: r.projectOf(), timeout: repairTimeout,
	}, func(a *answer) bool { return a.Repaired })
	return Repaired{
		Kept: a.Journal.KeptEvents, DroppedCorrupt: a.Journal.DroppedCorrupt, DroppedRequested: a.Journal.DroppedRequested,
		DroppedResolved: a.Journal.DroppedResolved, Backup: a.BackupDir,
	}, err
}
