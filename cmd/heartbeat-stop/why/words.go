package why

import (
	"fmt"
	"strings"
	"time"
	"unicode"

	"heartbeat/inbox"
)

// Name is what people call an entry: its own id, or else the first digits of
// its entry id.
func Name(id, entryID string) string {
	if id != "" {
		return id
	}
	return short(entryID)
}

func short(id string) string { return id[:min(12, len(id))] }

// Stamp is a time for people: local, to the second.
func Stamp(t time.Time) string { return t.Local().Format("2006-01-02 15:04:05") }

func (f Facts) ago(t time.Time) string {
	return fmt.Sprintf("%s (%s ago)", Stamp(t), max(0, f.Now.Sub(t)).Round(time.Second))
}

// Pause says since when, until when and why delivery is paused.
func Pause(p inbox.Pause) string {
	s := "paused since " + Stamp(p.At)
	if p.Until != nil {
		s += " until " + Stamp(*p.Until)
	}
	if p.Reason != "" {
		s += " (" + oneLine(p.Reason) + ")"
	}
	return s
}

// PauseEnds says what ends a pause.
func PauseEnds(p inbox.Pause) string {
	if p.Until != nil {
		return "then, or until heartbeat-stop resume"
	}
	return "heartbeat-stop resume"
}

// oneLine keeps what others wrote, such as a reason, from breaking a sentence.
func oneLine(s string) string {
	return strings.Join(strings.FieldsFunc(s, unicode.IsControl), " ")
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

// Count says how many there are of something.
func Count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
