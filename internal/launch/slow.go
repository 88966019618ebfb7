package launch

import (
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"
)

// slow writes lines that nobody waits for: what they go to may be a pipe that is
// full and not read.
type slow struct {
	lines chan string
	done  chan struct{}
	lost  atomic.Int64
	ended sync.Once
}

// slowPatience is how long the last lines may take to be written.
const slowPatience = time.Second

func newSlow(to io.Writer, room int) *slow {
	s := &slow{lines: make(chan string, room), done: make(chan struct{})}
	go func() {
		defer close(s.done)
		for line := range s.lines {
			_, _ = io.WriteString(to, line) // there is nobody else to tell
			if n := s.lost.Swap(0); n > 0 {
				_, _ = fmt.Fprintf(to, "(%d lines are missing here: they were not taken in time)\n", n)
			}
		}
	}()
	return s
}

// put has a line written, or counts it as lost.
func (s *slow) put(line string) {
	select {
	case s.lines <- line:
	default:
		s.lost.Add(1)
	}
}

// finish lets what was put be written.
func (s *slow) finish() {
	s.ended.Do(func() { close(s.lines) })
	select {
	case <-s.done:
	case <-time.After(slowPatience):
	}
}
