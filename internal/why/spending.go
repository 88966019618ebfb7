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

// IsOver says of a session that runs, and has reached its limit, what to do; empty
// otherwise.
func (s *Session) IsOver() string {
	if s.Over == nil || !s.runs() {
		return ""
	}
	return words.Line(s.over())
}

func (s *Session) over() string {
	return fmt.Sprintf("session %s gets nothing more since %s: %s, its limit: start a fresh one (/clear begins one in the same window), or give the hook a higher limit (--max-cost-per-session or --max-tokens-per-session)",
		words.Short(s.ID), words.Stamp(s.Over.At), s.Over.Text)
}
