package host

// Life is whether a process lives.
type Life int

// What is known about a process.
const (
	Unknown Life = iota
	Alive
	Gone
	Rebooted // gone, since the machine was rebooted
)

// String returns running, gone or unknown.
func (l Life) String() string {
	switch l {
	case Alive:
		return "running"
	case Gone, Rebooted:
		return "gone"
	}
	return "unknown"
}

// Ended reports whether it is certain that the process is gone.
func (l Life) Ended() bool { return l == Gone || l == Rebooted }

// LifeOf asks the kernel about the process that had this pid, start (see [ProcessStart]),
// boot and namespace. It is Unknown if the pid belongs to another namespace, or if pid or
// start was not recorded.
func LifeOf(boot, namespace string, pid int, start int64) Life {
	alive, known := Lives(boot, namespace, pid, start)
	switch {
	case alive:
		return Alive
	case !known:
		return Unknown
	case OtherBoot(boot):
		return Rebooted
	}
	return Gone
}

// Lives is [LifeOf] for those who need no more than whether the process runs.
func Lives(boot, namespace string, pid int, start int64) (alive, known bool) {
	switch {
	case OtherBoot(boot):
		return false, true
	case pid == 0 || start == 0 || namespace != PIDNamespace():
		return false, false
	}
	return ProcessStart(pid) == start, true
}
