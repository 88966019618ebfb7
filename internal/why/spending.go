package why

import (
	"fmt"

	"heartbeat/internal/words"
)

// NotCounted says of each session that runs why what it spends cannot be counted, where
// that is held against limits.
func (f Facts) NotCounted() (all []string) {
	for i := range f.Sessions {
		if sentence := f.Sessions[i].NotCounted(); sentence != "" {
			all = append(all, sentence)
		}
	}
	return all
}

// NotCounted is that sentence, empty where nothing is wrong.
func (s *Session) NotCounted() string {
	if s.Uncounted == nil || !s.runs() {
		return ""
	}
	return words.Line(fmt.Sprintf("limits are set, and nothing is counted of what session %s spends since %s, so that only limits of time hold: %s",
		words.Short(s.ID), words.Stamp(s.Uncounted.At), s.Uncounted.Text))
}
