// Package limit reads out of a message when a limit on use ends, as far as the
// message tells. It needs no other package, and no regular expressions: the hook
// that asks it starts once per turn.
package limit
