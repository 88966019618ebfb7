package program

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"
	"time"

	"heartbeat/internal/cli"
)

// ErrTimedOut is the cause of a context whose --timeout has passed.
var ErrTimedOut = errors.New("the time is over")

// UntilSignal returns a context that ends with a signal, or after the timeout unless that is 0. Its cause is a
// [cli.EndedBy] or [ErrTimedOut]. A signal after the cancel, while the command ends, does not change the exit status. A
// second signal kills the command. Under nohup a hangup stays ignored.
func UntilSignal(timeout time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGQUIT)
	if !signal.Ignored(syscall.SIGHUP) {
		signal.Notify(signals, syscall.SIGHUP)
	}
	go func() {
		first := <-signals
		signal.Stop(signals)
		cancel(cli.EndedBy{Signal: first.(syscall.Signal)})
	}()
	if timeout <= 0 {
		return ctx, func() { cancel(nil) }
	}
	ctx, stop := context.WithTimeoutCause(ctx, timeout, ErrTimedOut)
	return ctx, func() { stop(); cancel(nil) }
}
