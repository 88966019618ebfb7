package cli

import "syscall"

// EndedBy is the error of a wait that a signal ended.
type EndedBy struct{ syscall.Signal }

// Error names the signal.
func (e EndedBy) Error() string { return "ended by " + e.Signal.String() }

// Status is the exit status that a shell reports for the signal.
func (e EndedBy) Status() int { return 128 + int(e.Signal) }
