// Package session keeps the state file of an orchestrated session, in the format
// that babysitter's own CLI and hooks write and read, and holds the guards that
// keep a session from going round for ever.
//
// The file is `{stateDir}/{sessionId}.md`:
//
//	---
//	active: true
//	iteration: 3
//	max_iterations: 256
//	run_id: "r1"
//	started_at: "2026-11-20T23:53:52Z"
//	last_iteration_at: "2026-11-20T23:55:01Z"
//	iteration_times: 12,31
//	---
//
//	what the person asked for
//
// # Guarantee
//
// A reader finds the old state or the next one, never a part, and after a nil
// error a power loss leaves the next. Changes made through this package exclude
// each other by an advisory lock on the directory. The CLI takes no such lock: of
// a change by it and one by us at the same moment, the last one stays.
//
// # Limits
//
// Nothing here decides what a guard means: it says that one holds, and the caller
// ends the loop or does not.
package session
