// Package claude holds what heartbeat knows about Claude Code: what hooks read on
// stdin and may print, and what transcripts show. It knows nothing about queues.
// All behaviour was measured on release 2.1.329 unless a comment names another
// source.
package claude

import _ "heartbeat/internal/platform" // the systems that this is for
