// Package enforce holds what an entry, a session and a day have cost against their
// limits, and settles the entry in flight by that: for the hook, between two requests of
// a turn, and for whoever starts sessions.
package enforce
