// Package session reads and writes the state file of an orchestrated session, in the
// format of babysitter's own CLI and hooks, and has the guards that keep a session from
// repeating itself for ever.
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
//	the person's prompt
//
// # Guarantee
//
// A reader finds the old state or the new one, never a part of it, and a change that
// returned nil survives a power loss. Changes made through this package exclude each
// other by an advisory lock on the directory. The CLI takes no such lock: if it and this
// package make a change at the same moment, the later one stays.
//
// # Limits
//
// A guard only reports. The caller decides whether to end the loop.
package session
