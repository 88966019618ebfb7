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
	if a := m.readAccount(); slices.ContainsFunc(a.Raised, func(id string) bool { return gone[id] }) {
		a.Raised, m.tx.dirty, m.changed = slices.DeleteFunc(a.Raised, func(id string) bool { return gone[id] }), true, true
	}
	return len(m.readAccount().Raised)
}

// IsRaised reports whether a person set the limits of this entry and it was not delivered since.
func (m *Money) IsRaised(entryID string) bool {
	return slices.Contains(m.readAccount().Raised, entryID)
}
