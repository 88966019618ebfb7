// Command heartbeat-mcp gives agents, producers and operators the inbox as tools of the Model
// Context Protocol.
package main

import "heartbeat/internal/mcp"

func main() { mcp.Main() }
