package transcript

import "time"

// Options say where a session's messages are kept. DB, Spool and SessionID must be
// set. The spool is a file while a store is open, and afterwards if the database did
// not take all messages. Who opens a store or recovers one holds the session's lock.
type Options struct {
	DB        string // the SQLite database; it may be missing
	Spool     string // the spool file; its folder must exist
	SessionID string

	After int64 // the last number that the session is known to have used; 0 if none is

	SpoolMax  int64         // bytes that may wait in the spool; 1 GiB if 0
	MemoryMax int64         // bytes held where the spool cannot be written; 64 MiB if 0
	Keep      int64         // bytes of stored messages that stay in the spool for readers; 64 MiB if 0
	RowEvery  time.Duration // the shortest time between two writes of the guild's row; 2 s if 0

	// Log is told in a line of what goes wrong and when it is over. It must not call
	// the store. It may be nil.
	Log func(string)
}

func (o Options) withDefaults() Options {
	set(&o.SpoolMax, 1<<30)
	set(&o.MemoryMax, 64<<20)
	set(&o.Keep, 64<<20)
	set(&o.RowEvery, 2*time.Second)
	o.Keep = min(o.Keep, o.SpoolMax/2)
	if o.Log == nil {
		o.Log = func(string) {}
	}
	return o
}

func set[T int64 | time.Duration](v *T, usual T) {
	if *v <= 0 {
		*v = usual
	}
}
