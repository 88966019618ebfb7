package inbox

import "cmp"

// canceledSpan is a range of the queue file whose entries were canceled and are
// skipped when their turn comes.
type canceledSpan struct {
	start, end int64
	entries    int
	// sum tells whether the entries are still there. For one entry it is the
	// beginning of its entry_id, which finds the entry even where an edit has
	// moved it; for several, the beginning of a hash of their bytes. It is empty
	// until the commit.
	sum string
}

func byStart(s canceledSpan, at int64) int { return cmp.Compare(s.start, at) }
