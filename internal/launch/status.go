package launch

import (
	"errors"
	"slices"

	"heartbeat/internal/launch/managed"
	"heartbeat/internal/launch/terminal"
)

// Exit statuses; any other is the command's own.
const (
	exitOK        = 0
	exitError     = 1
	exitTimedOut  = 124 // as timeout(1) has it
	exitGaveUp    = 125
	exitCannotRun = 126 // as a shell has it
	exitNotFound  = 127

	// Those of work on an inbox; the last three are from sysexits(3).
	exitDeadLettered   = 3
	exitWorkLeft       = 75 // EX_TEMPFAIL
	exitAuthentication = 77 // EX_NOPERM
	exitSetUp          = 78 // EX_CONFIG
)

// statusOfError is the exit status where a command was not run.
func statusOfError(err error) int {
	switch {
	case errors.Is(err, terminal.ErrNotFound):
		return exitNotFound
	case errors.Is(err, terminal.ErrCannotRun):
		return exitCannotRun
	}
	return exitError
}

// statusOfOutcome is the exit status of a command that was run.
func statusOfOutcome(o terminal.Outcome) int {
	switch {
	case o.Cause == terminal.TimedOut:
		return exitTimedOut
	case o.Cause == terminal.GaveUp:
		return exitGaveUp
	case o.Cause == terminal.Asked:
		return exitOK
	case o.Cause == terminal.Signalled:
		return 128 + int(o.Signal)
	case o.Status.Signaled():
		return 128 + int(o.Status.Signal())
	}
	return o.Status.ExitStatus()
}

// statusOfReport is the exit status of work on an inbox.
func statusOfReport(r *managed.Report) int {
	switch {
	case r.Reason == managed.Signalled:
		return 128 + int(r.Signal)
	case r.Reason == managed.TimedOut:
		return exitTimedOut
	case r.Reason == managed.SetUp:
		return exitSetUp
	case r.Reason == managed.Authentication, r.Reason == managed.Refused:
		return exitAuthentication
	case !slices.Contains([]managed.Reason{managed.Drained, managed.Quit}, r.Reason) || r.Queued > 0:
		return exitWorkLeft
	case r.DeadLettered > 0:
		return exitDeadLettered
	}
	return exitOK
}
