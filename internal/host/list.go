package host

// Entry is a process as [List] returns it. Start is that of [ProcessStart].
type Entry struct {
	PID, Parent, Group int
	Start              int64
}
