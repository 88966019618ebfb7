// Package outcomes waits for what becomes of the entries of an inbox, reads it, hands it to consumers, and trims it:
// results, dead letters and events. The hook, which only adds to those files, does not link it.
package outcomes

import (
	"path/filepath"
	"time"

	"heartbeat/inbox"
	"heartbeat/internal/journal"
	"heartbeat/internal/journal/rotated"
)

func fileOf(b *inbox.Inbox, k journal.Kind) string { return filepath.Join(b.Dir(), k.Name()) }

func now(b *inbox.Inbox) time.Time { return b.Options().Now().UTC() }

// Tail reads the lines that are added to an append-only file, even if somebody rotates it away, trims it or
// creates it anew. It takes no lock.
type Tail = rotated.Tail

// OpenTail reads results, dead letters or events from the last n lines on, or from the start if n is negative.
func OpenTail(path string, n int) (*Tail, error) { return rotated.OpenTail(path, n) }
