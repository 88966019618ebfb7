package cli

import "syscall"

// EndedBy ends a wait: a signal asked for it.
type EndedBy struct{ syscall.Signal }

// Error names the signal.
func (e EndedBy) Error() string { return "ended by " + e.Signal.String() }

// Status is the exit status that a shell shows of such an end.
func (e EndedBy) Status() int { return 128 + int(e.Signal) }
