package launch

import (
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"
)

// lineQueue writes lines that nobody waits for: they may go to a pipe that is full
// and not read.
type lineQueue struct {
	lines chan string
	done  chan struct{}
	lost  atomic.Int64
	ended sync.Once
}

// finishPatience is how long the last lines may take to be written.
const finishPatience = time.Second

// newLineQueue holds up to room lines that the writer has not taken yet.
func newLineQueue(to io.Writer, room int) *lineQueue {
	q := &lineQueue{lines: make(chan string, room), done: make(chan struct{})}
	go func() {
		defer close(q.done)
		for line := range q.lines {
			_, _ = io.WriteString(to, line) // there is nobody else to tell
			if n := q.lost.Swap(0); n > 0 {
				_, _ = fmt.Fprintf(to, "(%d lines are missing here: they were not taken in time)\n", n)
			}
		}
	}()
	return q
}

// put queues a line, or counts it as lost.
func (q *lineQueue) put(line string) {
	select {
	case q.lines <- line:
	default:
		q.lost.Add(1)
	}
}

// finish waits until the queue is written, or for finishPatience.
func (q *lineQueue) finish() {
	q.ended.Do(func() { close(q.lines) })
	select {
	case <-q.done:
	case <-time.After(finishPatience):
	}
}
