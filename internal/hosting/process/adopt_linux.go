package process

import (
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// Adopt makes the orphans of clients children of this process, so that they are found
// and reaped. From then on this process must start no other children that it waits
// for itself. Call it once, before the first client starts.
func Adopt() {
	_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) // since Linux 3.4: cannot fail
	children.mu.Lock()
	children.adopts = true
	children.mu.Unlock()
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGCHLD)
	go children.reap(signals)
}
