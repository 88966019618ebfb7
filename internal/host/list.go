package host

// Entry is a process in the list of all. Start is as with [ProcessStart].
type Entry struct {
	PID, Parent, Group int
	Start              int64
}
