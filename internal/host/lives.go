package host

// Lives reports whether the very process lives that had this number in that boot
// and that namespace, and started then (see [ProcessStart]). It is not known
// where the number is not of this namespace, or one of these was not noted.
func Lives(boot, namespace string, pid int, start int64) (alive, known bool) {
	switch {
	case boot != "" && boot != BootID():
		return false, true
	case pid == 0 || start == 0 || namespace != PIDNamespace():
		return false, false
	}
	return ProcessStart(pid) == start, true
}
