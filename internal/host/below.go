package host

import (
	"os"
	"strings"
)

// mostParents bounds a chain of parents.
const mostParents = 64

// Nearest is a process, or the nearest one above it, that is what is looked for; 0 for none.
// A process whose parent has ended is below nobody any more.
func Nearest(pid int, is func(pid int) bool) int {
	for range mostParents {
		switch {
		case pid < 1:
			return 0
		case is(pid):
			return pid
		}
		pid = parent(pid)
	}
	return 0
}

// Variable is a variable of the environment that a process was started with, "" if it has
// none. known is false if the system does not show it.
func Variable(pid int, name string) (value string, known bool) {
	if pid == os.Getpid() {
		return os.Getenv(name), true
	}
	environ := Environ(pid)
	for _, kv := range environ {
		if value, is := strings.CutPrefix(kv, name+"="); is {
			return value, true
		}
	}
	return "", len(environ) > 0
}
