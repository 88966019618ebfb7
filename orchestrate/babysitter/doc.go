// Package babysitter runs the babysitter CLI, and is the only thing in heartbeat
// that writes to a run.
//
// The CLI is an unreliable neighbour. What process code prints stands before and
// after its answer, it may say nothing at all, or answer and not leave; its exit
// status says 1 for a success and 0 for a failed run. So an answer is what has the
// shape of one, wherever it stands; then the status counts, and then what was
// written to the error output. Where that leaves it open whether a result was
// posted, the run is asked.
//
// Two writers damage a run's journal. Every call that writes takes a lock of
// heartbeat's own first, for as long as the call takes.
package babysitter
