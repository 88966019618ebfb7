package journal

import (
	"errors"

	"heartbeat/internal/lines"
)

// Names of the files beside an inbox that are not append-only: see [Kind.Name] for
// those that are.
const (
	CursorName    = ".inbox-offset"
	InFlightName  = ".in-flight"
	RespondedName = ".responded"
	JournalName   = ".inbox-journal"
	LockName      = ".inbox-lock"
)

// Names are the names of all files beside an inbox.
func Names() []string {
	names := []string{CursorName, InFlightName, RespondedName, JournalName, LockName}
	for kind := range kinds {
		names = append(names, Kind(kind).Name())
	}
	return names
}

// ErrCorrupt says that a state file holds what nobody should have written.
var ErrCorrupt = lines.ErrCorrupt

// ErrUncertain says that a commit's sync failed, and so did taking the commit
// back: after a power loss it may or may not have happened.
var ErrUncertain = errors.New("commit uncertain")
