// Package inbox is a crash-safe queue over a JSONL file that anybody may append
// to.
//
// Producers write lines into the inbox, with `echo >>` or [Inbox.Append]. One
// consumer reads the line at the cursor (a byte offset), delivers it, and
// acknowledges it once it was answered; only then does the cursor move. An entry
// that was in flight when its consumer died is found again, and becomes a dead
// letter, is redelivered, or is dropped.
//
//	box, err := inbox.Open("work/inbox.jsonl", inbox.Options{})
//	tx, err := box.Begin(ctx)            // takes the inbox's lock
//	entry, err := tx.Next(inbox.Mark{})  // ErrEmpty, ErrTorn, or the next entry
//	tx.Deliver(entry, inbox.Recipient{SessionID: "s1"})
//	err = tx.Commit()                    // durable: now hand entry.Text over
//	tx.Close()
//
//	// later, with the answer, in a new transaction:
//	tx.Acknowledge("done")
//	err = tx.Commit()
//
// # Guarantee
//
// Delivery is at least once, in order, one entry at a time. [Tx.Commit] is one
// write to one file (the journal) and one sync, whatever the transaction holds;
// the documented state files follow from it; if a crash keeps them from following,
// the next transaction completes them. After Commit returned nil, neither a kill
// nor a power loss undoes it. After an error nothing was
// committed, unless the error matches [ErrUncertain].
//
// # Files
//
// Beside the inbox, in its directory, which must hold no second inbox:
//
//	.inbox-offset       the cursor, decimal
//	.in-flight          the entry in flight, one JSON object ([Delivery])
//	.responded          there while an entry is in flight
//	.results.jsonl      one [Result] a line for each acknowledged entry
//	.dead-letter.jsonl  one [DeadLetter] a line
//	.events.jsonl       one [Event] a line
//	.scheduled.jsonl    entries that wait for their time
//	.inbox-journal      the commits, from which the files above follow
//	.inbox-lock         the advisory lock
//
// Another program may change .inbox-offset, .in-flight and .responded while no
// transaction is open; the next transaction takes that over.
//
// The package internal/journal keeps these files, and knows nothing of entries.
//
// # Concurrency
//
// Any number of processes may use one inbox at once: each transaction holds an
// advisory lock that the kernel releases when its holder dies. Writers that
// append to the inbox file directly need no lock. An [Inbox] is safe for
// concurrent use; a [Tx] is not. The directory must be on a local file system.
package inbox
