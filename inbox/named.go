package inbox

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"heartbeat/internal/journal"
)

// Named is the base name of the inbox whose state a directory holds, empty if it holds
// none. It takes no lock. The name comes from a file that others may have written: it
// names a file in that directory, and nothing else is known of it.
func Named(dir string) (name string, err error) {
	store := journal.Open(filepath.Join(dir, "inbox"), nil, func(string, ...any) {})
	defer func() { err = errors.Join(err, store.Close()) }()
	l, err := store.Load()
	if err != nil {
		return "", fmt.Errorf("find the inbox of %s: %w", dir, err)
	}
	name = l.Record.Inbox
	if name != "" && name != filepath.Base(name) || slices.Contains(journal.Names(), name) {
		return "", fmt.Errorf("find the inbox of %s: its journal names %q: %w", dir, name, ErrCorrupt)
	}
	return name, nil
}
