package terminal

import (
	"os"

	"heartbeat/internal/host"
)

// family lists who lives of the session: the descendants of this process, but for
// the strangers among its children and theirs, and the command's process group.
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
