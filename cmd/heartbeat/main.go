// Command heartbeat is what people and programs type: it sends entries to an inbox,
// shows what became of them, and wires Claude Code to work through them.
package main

import "heartbeat/internal/command"

func main() { command.Main() }
