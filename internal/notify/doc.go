// Package notify tells a person, by a command of theirs, what in an inbox needs one: a
// dead letter, a pause, a question, a limit, sessions that fail one after the other, an
// inbox in which nothing moves.
//
// Occasions are derived from what is on disk, not from what a process happened to see:
// [Tell] compares the inbox with what was told so far, tells the rest, and notes that.
// A kill between the two has an occasion told again, and none is lost. What was told is
// in `.notified.json` beside the inbox, under the lock `.notify-lock`.
//
// The command line comes from a flag and never from a file beside the inbox, which an
// agent's tools may be able to write.
package notify
