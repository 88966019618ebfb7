package guild

import (
	"context"
	"time"
)

// Clock is the time that back-off and beats go by. Tests bring their own.
type Clock interface {
	Now() time.Time
	// Sleep returns after d, or with the context's cause once ctx ends.
	Sleep(ctx context.Context, d time.Duration) error
}

type machineClock struct{}

func (machineClock) Now() time.Time { return time.Now() }

func (machineClock) Sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
