package verbs

import (
	"context"
	"errors"
	"time"

	"heartbeat/internal/cli"
	"heartbeat/internal/host/signals"
)

// errTimedOut is the cause of a context whose --timeout has passed.
var errTimedOut = errors.New("the time is over")

// untilSignal returns a context that ends with the first signal that ends a program, and
// after the timeout unless that is 0. Its cause is a [cli.EndedBy] or errTimedOut.
func untilSignal(timeout time.Duration) (ctx context.Context, stop func()) {
	taken := signals.Take()
	caught, cancel := taken.Context()
	ctx, end := context.WithCancelCause(context.Background())
	go func() {
		<-caught.Done()
		if sig, _ := taken.Signal(); sig != 0 {
			end(cli.EndedBy{Signal: sig})
		}
	}()
	timed := func() {}
	if timeout > 0 {
		ctx, timed = context.WithTimeoutCause(ctx, timeout, errTimedOut)
	}
	return ctx, func() {
		timed()
		end(nil)
		cancel()
		taken.Stop()
	}
}

// ended is the error of a verb whose waiting a signal ended, or err.
func ended(ctx context.Context, err error) error {
	var by cli.EndedBy
	if errors.As(context.Cause(ctx), &by) {
		return cli.Status(by.Status(), by)
	}
	return err
}
