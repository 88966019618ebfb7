// Package orchestrate drives babysitter runs by way of an inbox: what a run asks
// for becomes entries, and what became of those goes back to the run.
//
// A run's process asks for effects and cannot go on without their results. A
// [Bridge] takes one step at a time: it has the process run as far as it gets,
// makes sure that each effect it then waits for is an entry of the inbox, once,
// and posts what needs no agent. It keeps a ledger beside the inbox, which is only
// what saves it looking: a step may be taken at any time, by any number of
// processes, and after a crash anywhere.
package orchestrate
