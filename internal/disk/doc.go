// Package disk is the one place where heartbeat changes files that hold state.
//
// Every call that changes something is announced as an [Op] before it happens,
// so that tests can kill the process there, make the call fail as a full or
// broken disk would, or record the calls and work out what a power loss leaves.
//
// Files are opened by descriptor, never followed through a symbolic link,
// created with mode 0600, and refused when they are not regular files or belong
// to another user. Errors name the operation and the path and wrap the errno.
package disk
