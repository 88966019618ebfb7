// Package meter counts what one session of the client spends.
//
// The count is in a file beside the inbox, .meter-SESSION. Whoever has a [Reading]
// advances it: the client's status line, a hook, or whoever outlives the session.
// Tokens come from the session's transcript, where each message counts once; dollars
// are the growth of the client's own total. A total says nothing of single requests,
// so its growth is given to those that it is new for.
//
// The file has two slots that are written in turn, under a lock on the file itself, so
// that one is whole whatever happens to a writer. It is not synced: a power loss may
// leave an older state, or none. Then the count begins anew, with another [State.ID],
// at the beginning of the transcript.
package meter
