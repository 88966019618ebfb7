package host

// WatchProcess follows a process until it is gone.
func WatchProcess(pid int) *Process { return pollProcess(pid) }
