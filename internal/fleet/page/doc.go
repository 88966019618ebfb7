// Package page declares the verbs of heartbeat-nats: their flags and their texts, a file
// each. What they do is in package verbs, which links NATS. heartbeat, which documents and
// completes all commands, links this package alone.
package page
