// Package transcript keeps every message of a session in the host's database, and shows
// the conversation in the guild's, which others use too.
//
// [Store.Append] commits a message before it returns, so that it survives a kill; a power
// loss may take the last seconds. A goroutine writes the guild's row now and then, so that
// whoever holds the guild's database locked holds nothing else up.
package transcript

import (
	"time"

	"heartbeat/internal/hosting/store"
)

// Options say where a session's messages are kept. DB, Guild and SessionID must be set.
// Who opens a transcript or recovers one holds the session's lock.
type Options struct {
	DB        *store.Store
	Guild     string // the guild's database; it may be missing
	SessionID string

	After int64 // the last number that the session is known to have used; 0 if none is

	MemoryMax int64         // bytes held while the database takes nothing; 64 MiB if 0
	ShowEvery time.Duration // the shortest time between two writes of the guild's row; 2 s if 0

	// Log is told in a line of what goes wrong and when it is over. It must not call
	// the store. It may be nil.
	Log func(string)
}

func (o Options) withDefaults() Options {
	if o.MemoryMax <= 0 {
		o.MemoryMax = 64 << 20
	}
	if o.ShowEvery <= 0 {
		o.ShowEvery = 2 * time.Second
	}
	if o.Log == nil {
		o.Log = func(string) {}
	}
	return o
}
