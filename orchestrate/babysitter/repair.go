package babysitter

import "context"

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
func (c *CLI) Repair(ctx context.Context, runDir string) (Repaired, error) { panic("todo") }
