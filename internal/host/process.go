package host

import (
	"time"

	"golang.org/x/sys/unix"
)

// Died returns a channel that is closed once the process is gone. The waiting
// goroutine stays until then.
func Died(pid int) <-chan struct{} {
	died := make(chan struct{})
	go func() {
		defer close(died)
		awaitDeath(pid)
	}()
	return died
}

// pollDeath is for systems where a process cannot be waited for by others.
func pollDeath(pid int) {
	for unix.Kill(pid, 0) != unix.ESRCH {
		time.Sleep(time.Second)
	}
}
