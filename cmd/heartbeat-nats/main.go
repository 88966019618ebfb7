// Command heartbeat-nats has many agents on many machines work through one stream of NATS
// JetStream, each message answered once.
package main

import "heartbeat/internal/fleet/verbs"

func main() { verbs.Main() }
