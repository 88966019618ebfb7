// Package guardian cleans up after a process that was killed: it ends what that
// process had started.
//
// A guardian is a small process of the same program, in a session of its own. It
// sleeps until its keeper, the process that started it, dismisses it or dies. If
// the keeper dies, the guardian restores the keeper's terminal and kills all
// processes that carry its mark in their environment, with their descendants.
package guardian

import "strings"

// Variable holds the marks of all sessions that a process belongs to, separated by
// colons, the innermost last.
const Variable = "HEARTBEAT_SESSION"

// Name is a guardian's argv[0], which ps shows.
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

// Then is what a guardian does, if it names anything, after its keeper's death and its own killing. It
// is given at the start, so that no file can change it.
type Then struct {
	// Remove are the paths of files and empty directories that it removes, in this order.
	Remove []string
	// Command has it become this program with these arguments, the first of which is the
	// name that ps shows, and with the variables of Env and no others.
	Command, Env []string
}
