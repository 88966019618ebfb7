// Package queue is the inbox of a hosted session: how its prompts become entries, how the
// client gets the first one of a round as its own prompt and the others by its Stop hook,
// and what became of each.
//
// A round is one client. Its host calls, in this order:
//
//	Settle    decides about what an earlier round left in flight
//	Waiting   says whether there is work for a round
//	Command   is the client's arguments; it wires the hook for this client alone
//	First     puts the next entry in flight, and returns the client's prompt
//	Begin     right before the client is started
//	Started   or NotStarted, right after
//	Settle    once the client has ended, with what its stream told
//	Fates     what became of the entries
package queue
