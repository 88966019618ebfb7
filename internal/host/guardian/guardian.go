// Package guardian ends what a process has started once that process is killed
// and cannot do so itself.
//
// A guardian is a small process of the same program, in a session of its own. It
// sleeps until its keeper dismisses it or dies. In the latter case it leaves the
// keeper's terminal as that was found, and kills all that carry its mark in their
// environment, and their descendants.
package guardian

import "strings"

// Variable holds the marks of all sessions that a process is in, the innermost
// last, with colons between them.
const Variable = "HEARTBEAT_SESSION"

// Name is what a guardian calls itself, in the list of processes as well.
const Name = "heartbeat-guardian"

// Marked is an environment with one more mark.
func Marked(env []string, mark string) []string {
	marked := make([]string, 0, len(env)+1)
	for _, kv := range env {
		if outer, found := strings.CutPrefix(kv, Variable+"="); !found {
			marked = append(marked, kv)
		} else if outer != "" {
			mark = outer + ":" + mark
		}
	}
	return append(marked, Variable+"="+mark)
}
