// Command heartbeat-host hosts a session of Claude Code for a program that may itself
// restart at any time: it keeps the transcript, serves tools, and reports how it ended.
package main

import "heartbeat/internal/hosting"

func main() { hosting.Main() }
