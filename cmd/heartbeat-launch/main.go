// Command heartbeat-launch runs a command in a terminal of its own.
package main

import "heartbeat/internal/launch"

func main() { launch.Main() }
