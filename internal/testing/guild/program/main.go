// Command program is a guild for tests in a process of its own.
package main

import "heartbeat/internal/testing/guild"

func main() { guild.Main() }
