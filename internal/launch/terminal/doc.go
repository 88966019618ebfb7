// Package terminal runs a command in a terminal of its own: a PTY, in a session
// of its own, until it ends or is ended, with everything that it started.
//
// A [Run] is a process's main job. It handles signals, on Linux makes the process
// the one that orphans fall to, and waits for whichever child ends. Nothing else
// in the process may start processes meanwhile. Runs may follow one another: each
// leaves to the next what is typed and who dies after it.
package terminal
