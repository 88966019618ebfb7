package claim

import (
	"context"
	"errors"
	"fmt"
	"time"

	"heartbeat/inbox"
	"heartbeat/internal/host"
	"heartbeat/internal/words"
)

// deathPatience is how long a session may take to die after its worker was killed.
const deathPatience = 3 * time.Second

// CheckFree returns a [BusyError] if a session that lives has an entry of the inbox.
func CheckFree(ctx context.Context, box *inbox.Inbox) (err error) {
	tx, err := box.Begin(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, tx.Close()) }()
	d := tx.InFlight()
	if d == nil {
		return nil
	}
	s, err := tx.Session(d.SessionID)
	if err != nil || s.EndedAt != nil {
		return err
	}
	for deadline := time.Now().Add(deathPatience); ; {
		alive, known := host.Lives(s.Boot, s.Namespace, s.PID, s.ProcessStart)
		switch {
		case !known || !alive:
			return nil
		case time.Now().After(deadline):
			return BusyError{fmt.Sprintf("session %s (process %d)", words.Short(s.ID), s.PID)}
		}
		select {
		case <-host.WatchProcess(s.PID).Died():
		case <-time.After(time.Until(deadline)):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
