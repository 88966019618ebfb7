// The hook starts once per turn and lives for a moment: looking up the
// container's CPU quota, and following it, would only make it later.
//
//go:debug containermaxprocs=0
//go:debug updatemaxprocs=0

// Command heartbeat-stop is a Claude Code Stop hook that delivers the next entry
// of a JSONL inbox after every turn.
package main

import "heartbeat/internal/hook"

func main() { hook.Main() }
