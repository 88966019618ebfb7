// Package command runs the command of a task, and bounds its time, how much of its output
// is kept, and the life of the processes that it starts.
package command

import _ "heartbeat/internal/platform" // the systems that this is for
