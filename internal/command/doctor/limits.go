package doctor

// checkLimits looks for sessions whose spending is held against limits and cannot be
// counted.
func checkLimits(e *examination) (all []Check) {
	if e.inbox == "" || e.NotCounted == nil {
		return nil
	}
	for _, sentence := range e.NotCounted(e.inbox) {
		all = append(all, warn("limits", "mend that; what was not counted is counted then", "%s", sentence))
	}
	return all
}
