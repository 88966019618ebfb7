package host

// Parent is the process that a process is a child of, 0 if it has ended.
func Parent(pid int) int { return parent(pid) }

// mostParents bounds a chain of parents.
const mostParents = 64

// IsBelow reports whether a process is that ancestor or a descendant of it. A process whose
// parent has ended is nobody's descendant any more.
func IsBelow(pid, ancestor int) bool {
	for range mostParents {
		switch pid {
		case ancestor:
			return pid > 0
		case 0, 1:
			return false
		}
		pid = parent(pid)
	}
	return false
}
