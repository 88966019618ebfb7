package guardian

import (
	"errors"
	"fmt"
	"syscall"

	"heartbeat/internal/machine"
)

// below lists the living processes for which begins returns true, with their descendants, except strangers
// and the strangers' descendants.
func below(begins func(machine.Entry) bool, strange func(pid int) bool) (found []machine.Entry) {
	children := map[int][]machine.Entry{}
	var queue []machine.Entry
	for _, p := range machine.List() {
		children[p.Parent] = append(children[p.Parent], p)
		if begins(p) {
			queue = append(queue, p)
		}
	}
	seen := map[int]bool{}
	for len(queue) > 0 {
		p := queue[0]
		queue = queue[1:]
		if !seen[p.PID] && !strange(p.PID) {
			seen[p.PID] = true
			found = append(found, p)
			queue = append(queue, children[p.PID]...)
		}
	}
	return found
}

// WhyNot explains the kernel's error about an existing program that could not be started in dir.
// The result matches [machine.Passes] if the next try may work.
func WhyNot(err error, dir string) error {
	switch {
	case errors.Is(err, syscall.ENOEXEC):
		return errors.New("it is neither a program of this system nor a script with #! in its first line")
	case errors.Is(err, syscall.ENOENT):
		return errors.New("it, what would run it (its first line or its loader), or the folder " + dir + " is not there")
	case errors.Is(err, syscall.E2BIG):
		return errors.New("its arguments and environment are too long for the system")
	case machine.Passes(err):
		return fmt.Errorf("%w: the system has no room for it now", err)
	}
	return err
}
