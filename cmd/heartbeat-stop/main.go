// Command heartbeat-stop is a Claude Code Stop hook that delivers the next entry
// of a JSONL inbox after every turn.
package main

import (
	"heartbeat/internal/hook"
	_ "heartbeat/internal/stack" // it makes each tick a twentieth shorter
)

func main() { hook.Main() }
