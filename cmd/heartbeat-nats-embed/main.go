// Command heartbeat-nats-embed is heartbeat-nats with a server in it, for --embed.
// heartbeat-nats becomes it by itself.
package main

import (
	"heartbeat/internal/fleet/link"
	"heartbeat/internal/fleet/serving"
	"heartbeat/internal/fleet/verbs"
)

func main() {
	link.StartServer = serving.Start
	verbs.Main()
}
