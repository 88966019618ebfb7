// Package host is what heartbeat needs to know about the machine: which boot this
// is, a clock that only goes forward, and which processes run.
package host

import _ "heartbeat/internal/platform" // the systems that this is for
