package terminal

import (
	"os"

	"heartbeat/internal/host"
)

// family lists the living processes of the session: the command's process group and
// all descendants of this process, except strangers and their descendants.
func family(leader int, strangers map[int]bool) (pids []int) {
	children := map[int][]int{}
	seen := map[int]bool{}
	var queue []int
	for _, p := range host.List() {
		children[p.Parent] = append(children[p.Parent], p.PID)
		if leader != 0 && p.Group == leader {
			queue = append(queue, p.PID)
		}
	}
	queue = append(queue, children[os.Getpid()]...)
	for len(queue) > 0 {
		pid := queue[0]
		queue = queue[1:]
		if seen[pid] || strangers[pid] {
			continue
		}
		seen[pid] = true
		pids = append(pids, pid)
		queue = append(queue, children[pid]...)
	}
	return pids
}
