// Package pairs lets one actor have an entry in flight, does something to it, and lets
// another act on the same inbox: for every ordered pair of actors. It has only tests.
package pairs
