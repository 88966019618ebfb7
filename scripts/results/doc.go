// Package results has commands for heartbeat results --exec and heartbeat launch --on-result that
// are ready to use, and tries each.
package results
