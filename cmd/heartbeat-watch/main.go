// Command heartbeat-watch shows inboxes in a terminal, and keeps the view up to date.
package main

import "heartbeat/internal/watching"

func main() { watching.Main() }
