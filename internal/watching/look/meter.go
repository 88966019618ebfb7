package look

import (
	"heartbeat/inbox"
	"heartbeat/internal/charging"
)

// meterOf reads the meters of an inbox's sessions.
func meterOf(dir string) func(session string) *inbox.Reading { return charging.Load(dir) }
