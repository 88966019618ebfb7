// Command heartbeat-stop is a Claude Code Stop hook that delivers the next entry
// of a JSONL inbox after every turn.
package main

import "heartbeat/internal/hook"

func main() { hook.Main() }
