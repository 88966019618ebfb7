// It ends before Go would look again how many processors there are, and nobody reads
// the names of its memory mappings.
//
//go:debug updatemaxprocs=0
//go:debug decoratemappings=0

// Command heartbeat-meter is a status line of Claude Code that counts what the session
// spends, and shows the person's own line.
package main

import (
	_ "heartbeat/internal/stack" // as in heartbeat-stop
	"heartbeat/internal/statusline"
)

func main() { statusline.Main() }
