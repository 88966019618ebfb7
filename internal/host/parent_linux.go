package host

// parent is the process that a process is a child of, 0 if it has ended.
func parent(pid int) int {
	e, _ := entry(pid)
	return e.Parent
}
