// Package command runs a command that a task names, and bounds all of it: its time,
// what is kept of its output, and the life of whatever it starts.
package command
