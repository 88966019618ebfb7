package inbox

import "cmp"

// canceledSpan is a range of the queue file whose entries were canceled, and are
// passed over when their turn comes.
type canceledSpan struct {
	start, end int64
	entries    int
	// sum tells whether they still stand there: of one entry the beginning of its
	// entry_id, by which it is found where an edit has moved it, of more that of
	// their bytes' hash. It is empty until the commit.
	sum string
}

func byStart(s canceledSpan, at int64) int { return cmp.Compare(s.start, at) }
