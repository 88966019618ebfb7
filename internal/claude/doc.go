// Package claude speaks Claude Code's side of things: what its hooks get on
// stdin and may print, and what its transcripts show. It knows nothing of
// queues. The behaviour is that of release 2.1.329 as measured, unless a
// comment names another source.
package claude
