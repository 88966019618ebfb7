package inbox

import "slices"

// MaxRaised is how many undelivered entries may have limits that a person set. Beyond it the oldest lose
// their exception: they are set aside, and can be given limits again.
const MaxRaised = 64

// noteRaised notes that a person set the limits of this entry.
func (m *Money) noteRaised(entryID string) {
	a := m.changeAccount()
	a.Raised = append(slices.DeleteFunc(a.Raised, func(id string) bool { return id == entryID }), entryID)
	a.Raised = a.Raised[max(0, len(a.Raised)-MaxRaised):]
}

// Raised returns how many entries may have limits that a person set, once those are forgotten that wait no longer.
func (m *Money) Raised(gone map[string]bool) int {
	a, isGone := m.readAccount(), func(id string) bool { return gone[id] }
	if slices.ContainsFunc(a.Raised, isGone) {
		a = m.changeAccount()
		a.Raised = slices.DeleteFunc(a.Raised, isGone)
	}
	return len(a.Raised)
}

// IsRaised reports whether a person set the limits of this entry and it was not delivered since.
func (m *Money) IsRaised(entryID string) bool {
	return slices.Contains(m.readAccount().Raised, entryID)
}
