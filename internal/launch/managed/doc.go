// Package managed works through an inbox with sessions of Claude Code, one after the
// other, each in a terminal of its own. It does what every launcher must, in the right
// order: keep others off, settle what a dead session left, wire the hook, watch the
// session, and rest before the next one.
package managed
