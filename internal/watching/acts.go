package watching

import (
	"sync"
	"time"
)

// acts counts what is being done, so that the program does not end amid it.
type acts struct{ sync.WaitGroup }

func (a *acts) add()  { a.Add(1) }
func (a *acts) done() { a.Done() }

// patience is how long a verb may still take once the display is gone. It ends by
// itself then: it is a process of its own.
const patience = 2 * time.Second

func (a *acts) wait() {
	over := make(chan struct{})
	go func() {
		a.Wait()
		close(over)
	}()
	select {
	case <-over:
	case <-time.After(patience):
	}
}
