// Package run reads the directory of a babysitter run, and never writes to it.
//
// A run is a process that asks for effects (a shell command, a question to a person, work
// for an agent) and continues when they are answered. The run is its journal, a folder
// with one file for each event, named SEQ.ULID.json. The babysitter command derives
// everything else from the journal, and so does this package: it refuses what the command
// refuses, and otherwise comes to the same result. It exists because a turn cannot wait a
// quarter of a second for Node to start.
//
// The command writes each event to a temporary file and renames it, so an event in the
// journal is complete. An event that cannot be read is damage, even if it is the last.
package run
