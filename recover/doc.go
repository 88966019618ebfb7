// Package recover decides what becomes of an entry that is in flight and that nobody
// will answer: an orphan, whose session ended, or one whose turn ended in an error.
//
// Import it under another name, so that the builtin stays usable:
//
//	import recovery "heartbeat/recover"
//
// [Decide] is the rule, and changes nothing. [Settle] carries it out within a
// transaction that goes on to deliver the next entry, and [Run] in one of its own, as a
// launcher does between two sessions.
//
// [Evidence] is what the hook keeps with a delivery, so that it can be told later whether
// the model ever got the text, and whose turn brings the answer.
//
// Running a recovery twice equals running it once, and a kill at any point followed by
// another run equals one run: the decision is one commit of the inbox.
package recover
