// A tick ends before Go would look again how many processors there are, and nobody
// reads the names of its memory mappings.
//
//go:debug updatemaxprocs=0
//go:debug decoratemappings=0

// Command heartbeat-stop is a Claude Code Stop hook that delivers the next entry of a JSONL inbox after every turn.
package main

import "heartbeat/internal/hook"

func main() { hook.Main() }
