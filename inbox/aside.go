package inbox

import (
	"fmt"
)

// SetAside counts entries that became dead letters on the way to the next one.
type SetAside struct {
	Reason Reason
	Count  int
	// Entry names the first of them: its own id, or the first digits of its entry id.
	Entry string
	// Start and End are the range of the inbox that holds them.
	Start, End int64
}

// String is a sentence about them, for a person.
func (s SetAside) String() string {
	if s.Count == 1 {
		return fmt.Sprintf("the entry %s is a dead letter, %s", s.Entry, s.Reason)
	}
	return fmt.Sprintf("%d entries, the first of them %s, are dead letters, %s", s.Count, s.Entry, s.Reason)
}

// AddSetAside adds up what several transactions set aside, one element for each
// reason.
func AddSetAside(all []SetAside, more ...SetAside) []SetAside {
next:
	for _, m := range more {
		for i := range all {
			if s := &all[i]; s.Reason == m.Reason {
				s.Count += m.Count
				s.Start, s.End = min(s.Start, m.Start), max(s.End, m.End)
				continue next
			}
		}
		all = append(all, m)
	}
	return all
}
