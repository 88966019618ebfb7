// Package recover decides what becomes of an entry that was in flight when its
// session ended without answering it: an orphan.
//
// Import it under another name, so that the builtin stays usable:
//
//	import recovery "heartbeat/recover"
//
// [Run] is what a launcher calls between two sessions. [Settle] is the same
// decision within a transaction that goes on to deliver the next entry.
//
// Running it twice equals running it once, and a kill at any point followed by
// another run equals one run: the decision is one commit of the inbox.
package recover
