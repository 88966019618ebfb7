package why

import (
	"fmt"
	"time"

	"heartbeat/inbox"
	"heartbeat/internal/words"
)

func (f Facts) ago(t time.Time) string {
	return fmt.Sprintf("%s (%s ago)", words.Stamp(t), words.Took(f.Now.Sub(t).Truncate(time.Second)))
}

// Pause says since when, until when and why delivery is paused.
func Pause(p inbox.Pause) string {
	s := "paused since " + words.Stamp(p.At)
	if p.Until != nil {
		s += " until " + words.Stamp(*p.Until)
	}
	if p.Reason != "" {
		s += " (" + words.Line(p.Reason) + ")"
	}
	return s
}

// PauseEnds is what ends a pause.
func PauseEnds(p inbox.Pause) string {
	if p.OfLimit() {
		return "then, or until the hook has a higher limit, and then heartbeat resume"
	}
	if p.Until != nil {
		return "then, or until heartbeat resume"
	}
	return "heartbeat resume"
}

func process(pid int, name string) string {
	switch {
	case pid < 0:
		return "a process that cannot be named"
	case name == "":
		return fmt.Sprintf("process %d", pid)
	}
	return fmt.Sprintf("process %d (%s)", pid, name)
}
