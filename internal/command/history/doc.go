// Package history puts together what happened to the entries of an inbox, out of
// results, dead letters, events, and what waits or is in flight.
package history
