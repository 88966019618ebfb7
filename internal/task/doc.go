// Package task is what an agent says of the entry that it works on: that it is done, is to be
// tried again, or cannot be done, and how far it is.
//
// What it says is committed with the entry, and carried out by whoever settles that. It is
// taken only from a process of the session that has the entry: a tool server that an earlier
// session left behind, or that serves another session, cannot speak for it.
package task
