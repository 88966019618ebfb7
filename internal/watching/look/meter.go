package look

import "heartbeat/inbox"

// meterOf reads the meters of an inbox's sessions, for what is not charged yet.
func meterOf(dir string) func(session string) *inbox.Reading { return nil }
