// Package orchestrate drives babysitter runs through an inbox: what a run asks for
// becomes entries, and the answers go back to the run.
//
// A run's process asks for effects and cannot continue without their results. A
// [Bridge] takes one step at a time: it runs the process as far as it gets, makes sure
// that each effect the process then waits for has exactly one entry in the inbox, and
// posts results that need no agent. The ledger beside the inbox is a cache: it saves
// work, and nothing depends on it. A step may be taken at any time, by any number of
// processes, and after a crash at any point.
package orchestrate
