package hosting

import (
	"context"
	"errors"

	"heartbeat/internal/cli"
	"heartbeat/internal/host/signals"
)

// untilSignal returns a context that ends with the first signal that ends a program.
// status makes an error of a verb that such a signal has ended.
func untilSignal() (ctx context.Context, stop func(), status func(error) error) {
	taken := signals.Take()
	ctx, cancel := taken.Context()
	stop = func() {
		cancel()
		taken.Stop()
	}
	return ctx, stop, func(err error) error {
		if sig, _ := taken.Signal(); sig != 0 && (err == nil || errors.Is(err, context.Canceled)) {
			by := cli.EndedBy{Signal: sig}
			return cli.Status(by.Status(), by)
		}
		return err
	}
}
