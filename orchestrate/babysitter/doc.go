// Package babysitter runs the babysitter CLI. It is the only package of heartbeat that
// writes to a run.
//
// The output of the CLI is unreliable. Process code prints before and after the answer,
// the CLI may print nothing at all, or answer and keep running, and it exits with 1 after
// some successes and with 0 for a failed run. So the answer is whatever in the output has
// the shape of one; without one the exit status counts, and then the error output. If it
// is still open whether a result was posted, the run is asked.
//
// Two writers damage a run's journal. Every call that writes takes a lock of
// heartbeat's own first, for as long as the call takes.
package babysitter
