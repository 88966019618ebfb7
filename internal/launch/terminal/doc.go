// Package terminal runs a command in a PTY and a session of its own, until the
// command and everything that it started have ended, or are made to end.
//
// A [Run] owns the process: it handles signals, waits for any child that ends, and
// on Linux makes the process adopt orphans (PR_SET_CHILD_SUBREAPER). Nothing else in
// the process may start processes meanwhile. Runs may follow one another; what is
// typed and who dies after the end of one belongs to the next.
package terminal
