package host

// Lives reports whether the process still runs that had this pid, start (see
// [ProcessStart]), boot and namespace. known is false if the pid belongs to another
// namespace, or if pid or start was not recorded.
func Lives(boot, namespace string, pid int, start int64) (alive, known bool) {
	switch {
	case boot != "" && boot != BootID():
		return false, true
	case pid == 0 || start == 0 || namespace != PIDNamespace():
		return false, false
	}
	return ProcessStart(pid) == start, true
}
