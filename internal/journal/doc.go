// Package journal keeps the state of one inbox, and knows nothing of what the
// state means for an entry.
//
// A commit is one record, one line of .inbox-journal, written and synced once. It
// holds the whole state and the lines that it adds to other files. Those files,
// the cursor and what is in flight follow the record without a sync; a mark behind
// the record says that they did. Where a kill or a power loss kept them from
// following, the next process to take the lock makes them good from the records.
//
//	kind.go    the append-only files, one row each
//	record.go  what a record holds; codec.go lists its members
//	log.go     .inbox-journal: the newest record, one more, a mark
//	place.go   where the lines of a commit go
//	store.go   all files of one inbox; commit.go and follow.go change them
//	replay.go  what a crash left undone
//	queue.go   lines for the queue file, to which others append without a lock
//	tail.go    reading an append-only file that grows and is rotated
package journal
