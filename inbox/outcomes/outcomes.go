// Package outcomes waits for what becomes of the entries of an inbox, reads it, hands it to consumers, and trims it:
// results, dead letters and events. The hook, which only adds to those files, does not link it.
package outcomes

import (
	"path/filepath"
	"time"

	"heartbeat/inbox"
	"heartbeat/internal/journal"
)

func fileOf(b *inbox.Inbox, k journal.Kind) string { return filepath.Join(b.Dir(), k.Name()) }

func now(b *inbox.Inbox) time.Time { return b.Options().Now().UTC() }
