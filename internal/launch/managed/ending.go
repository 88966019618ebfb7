package managed

import (
	"errors"
	"syscall"

	"heartbeat/internal/claim"
)

// ending is why the work ends.
type ending struct {
	reason Reason
	detail string
	signal syscall.Signal
}

// setUp ends the work because of something that only a person can set right.
func setUp(err error) *ending { return &ending{reason: SetUp, detail: err.Error()} }

func signalled(sig syscall.Signal) *ending {
	return &ending{reason: Signalled, signal: sig, detail: "this process got a signal: " + sig.String()}
}

func (r *run) timedOut() *ending {
	return &ending{reason: TimedOut, detail: "the time was over (--timeout " + r.Terminal.Timeout.String() + ")"}
}

// stuck ends the work because of an error, if there is one: before the first session
// it is a matter of set-up, later it may pass.
func (r *run) stuck(err error) *ending {
	var busy claim.BusyError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &busy):
		return &ending{reason: Busy, detail: busy.Error()}
	case r.report.Sessions == 0:
		return setUp(err)
	}
	return &ending{reason: Left, detail: err.Error()}
}
