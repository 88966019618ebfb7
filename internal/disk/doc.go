// Package disk is the only place where heartbeat changes files that hold state.
//
// Every call that changes something is announced as an [Op] before it is made, so
// that tests can kill the process there, make the call fail like a full or broken
// disk, or record the calls and compute what a power loss leaves.
//
// State files are opened without following symbolic links, are created with mode
// 0600, and are refused if they are not regular files, belong to another user or
// have a second name. Opening one for writing narrows its mode to 0600. Errors name
// the operation and the path and wrap the errno.
//
// Reading a whole file is bounded: see [ReadFile], [ReadState] and [File.ReadAll].
package disk

import _ "heartbeat/internal/platform" // the systems that this is for
