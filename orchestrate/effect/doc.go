// Package effect is the little that a program has to know of babysitter runs to tell
// an entry of a run from any other, and to offer the options that say how runs are
// driven.
//
// It links neither babysitter's files nor its schemas, so a hook that has no run to
// drive stays small. Everything else about runs is in package orchestrate.
package effect
