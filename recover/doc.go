// Package recover decides who owns the entry in flight, and what becomes of it. Every actor
// asks here: hooks, launcher, session host, the verb recover, the agent of a fleet.
//
// Import it under another name, so that the builtin stays usable:
//
//	import recovery "heartbeat/recover"
//
// It has three entrances. [Settle] decides about the entry in flight, by one table whose
// first row is that of an owner who lives: see [OwnerOf]. [Held] says why nothing is
// delivered, and [Next] which entry comes. [Run] is Settle in a transaction of its own, and
// [Waiting] both of the others for those who start sessions.
//
// [Evidence] is what the hook keeps with a delivery, so that it can be told later whether
// the model ever got the text, and whose turn brings the answer.
//
// Settling twice equals settling once, and a kill at any point followed by another try
// equals one: the decision is one commit of the inbox.
package recover
