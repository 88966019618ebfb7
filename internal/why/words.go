package why

import (
	"fmt"
	"time"

	"heartbeat/internal/words"
)

func (f Facts) ago(t time.Time) string {
	return fmt.Sprintf("%s (%s ago)", words.Stamp(t), words.Took(f.Now.Sub(t).Truncate(time.Second)))
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
