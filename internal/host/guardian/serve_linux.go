package guardian

import (
	"os"
	"os/signal"
	"syscall"
)

// serves is set once this program can be a guardian.
var serves bool

// Serve must be the first call of a program that uses [Post]. It does not return in
// a guardian's process.
func Serve() {
	serves = true
	if len(os.Args) < 2 || os.Args[0] != Name {
		return
	}
	guard(os.Args[1])
	if then := os.Args[2:]; len(then) > 0 {
		signal.Reset()
		_ = syscall.Close(keeping)
		_ = syscall.Exec("/proc/self/exe", then, os.Environ()) // nobody is left to tell
	}
	os.Exit(0)
}
