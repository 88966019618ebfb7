// Package disk is the one place where heartbeat changes files that hold state.
//
// Every call that changes something is announced as an [Op] before it happens,
// so that tests can kill the process there, make the call fail as a full or
// broken disk would, or record the calls and work out what a power loss leaves.
//
// Files are opened by descriptor, never followed through a symbolic link,
// created with mode 0600, and refused when they are not regular files, belong
// to another user or have a second name. One that is opened for writing gets mode
// 0600 if it had wider rights. Errors name the operation and the path and wrap
// the errno.
//
// What is read whole has a bound: see [ReadFile], [ReadState] and [File.ReadAll].
package disk
