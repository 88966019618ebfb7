// Package guardian ends what a process has started: a [Family] while that process lives, a guardian after it was killed.
//
// A guardian is a small process of the same program, in its own session. It sleeps until its keeper, the
// process that started it, dismisses it or dies. If the keeper dies, the guardian restores the keeper's
// terminal and kills all processes that carry the keeper's mark in their environment, with their descendants.
package guardian

import "strings"

// Variable holds the marks of all sessions that a process belongs to, separated by colons, innermost last.
const Variable = "HEARTBEAT_SESSION"

// Name is a guardian's argv[0], as ps shows it.
const Name = "heartbeat-guardian"

// Marked returns env with one more mark.
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

// Then is what a guardian does after its keeper has died and it has killed the rest. The keeper passes it at the
// start, so that no file can change it.
type Then struct {
	// Remove lists files and empty directories to remove, in this order.
	Remove []string
	// Command holds the arguments, argv[0] first, with which the guardian then executes this
	// program. Env is that program's environment.
	Command, Env []string
}
