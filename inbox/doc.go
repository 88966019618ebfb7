// Package inbox is a crash-safe queue over a JSONL file that anybody may append
// to.
//
// Producers write lines into the inbox, with `echo >>` or [Inbox.Append]. One
// consumer reads the line at the cursor (a byte offset), delivers it, and
// acknowledges it once it was answered; only then does the cursor move. What
// was in flight when a consumer died is found again, and is set aside as a dead
// letter, redelivered or dropped.
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
// the documented state files follow from it, and are made good by the next
// transaction if a crash kept them from following. After Commit returned nil,
// neither a kill nor a power loss undoes it. After an error nothing was
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
//	.inbox-journal      the commits; what the files above follow from
//	.inbox-lock         the advisory lock
//
// Another program may change .inbox-offset, .in-flight and .responded while no
// transaction is open; the next transaction honours it.
//
// # Concurrency
//
// Any number of processes may use one inbox at once: each transaction holds an
// advisory lock that the kernel releases when its holder dies. Writers that
// append to the inbox file directly need no lock. An [Inbox] is safe for
// concurrent use; a [Tx] is not. The directory must be on a local file system.
package inbox
