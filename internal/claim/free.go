package claim

import (
	"context"
	"errors"
	"time"

	"heartbeat/inbox"
	"heartbeat/internal/host"
	recovery "heartbeat/recover"
)

// deathPatience is how long a session may take to die after its worker was killed.
const deathPatience = 3 * time.Second

// CheckFree returns a [BusyError] if the owner of an entry in flight lives.
func CheckFree(ctx context.Context, box *inbox.Inbox) error {
	deadline := time.After(deathPatience)
	for late := false; ; {
		owner, err := ownerOf(box)
		switch {
		case err != nil || owner == nil || owner.Life != host.Alive:
			return err
		case late:
			return BusyError{owner.String()}
		}
		select {
		case <-host.WatchProcess(owner.PID).Died():
		case <-deadline:
			late = true
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// ownerOf is the owner of the entry in flight, nil if none is.
func ownerOf(box *inbox.Inbox) (owner *recovery.Owner, err error) {
	v, err := box.View()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, v.Close()) }()
	if d := v.InFlight(); d != nil {
		o := recovery.OwnerOf(v, d)
		owner = &o
	}
	return owner, nil
}
