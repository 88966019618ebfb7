package recover

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	"heartbeat/inbox"
	"heartbeat/internal/disk"
)

const spillPrefix, spillSuffix = ".woken-", ".txt"

// SpillPath is the file for a text that is too long to wake a session with, the
// same for every delivery of an entry.
func SpillPath(box *inbox.Inbox, entryID string) string {
	return filepath.Join(box.Dir(), spillPrefix+entryID[:min(12, len(entryID))]+spillSuffix)
}

// SpillName is the name of an entry's file in the inbox's directory, which may be
// called otherwise by now.
func SpillName(d *inbox.Delivery) string { return filepath.Base(EvidenceOf(d).Spill) }

// IsSpill reports whether a file is such a text, whole or half-written.
func IsSpill(name string) bool {
	name = strings.TrimSuffix(name, ".tmp")
	return strings.HasPrefix(name, spillPrefix) && strings.HasSuffix(name, spillSuffix)
}

// ForgetSpills removes the files of all entries but the one in flight, and what a killed
// hook left half-written. The caller holds the inbox's lock.
func ForgetSpills(box *inbox.Inbox, inFlight *inbox.Delivery) (err error) {
	kept := ""
	if inFlight != nil {
		kept = SpillName(inFlight)
	}
	names, err := os.ReadDir(box.Dir())
	for _, n := range names {
		if IsSpill(n.Name()) && n.Name() != kept {
			err = errors.Join(err, disk.Remove(filepath.Join(box.Dir(), n.Name())))
		}
	}
	return err
}
