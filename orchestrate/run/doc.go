// Package run reads the directory of a babysitter run, and never writes to it.
//
// A run is a process that asks for effects (a shell command, a question to a
// person, work for an agent) and goes on once they are answered. Its truth is a
// journal of one file for each event, named SEQ.ULID.json. The babysitter command
// derives everything else from it, and so does this package: what it refuses to
// read, this package refuses, and where it reads, both come to the same. The hook
// runs after every turn and cannot wait a quarter of a second for Node to start.
//
// The command writes each event to a temporary name and renames it, so an event
// that is there is whole. One that cannot be read is damage, also when it is the
// last.
package run
