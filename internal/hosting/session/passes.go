package session

import (
	"errors"

	"heartbeat/internal/hosting/store"
	"heartbeat/internal/machine"
)

// pausedError says that nothing is delivered from the session's inbox until a time.
type pausedError struct{ error }

// Passes reports whether what an error of [Run] says will be over without anybody's
// help, so that the session can be started later.
func Passes(err error) bool {
	var paused *pausedError
	return errors.As(err, &paused) || machine.Passes(err) || store.Passes(err)
}
