package guardian

import "os"

// serves is set once this program can be a guardian.
var serves bool

// Serve must be the first call of a program that uses [Post]. It does not return in
// a guardian's process.
func Serve() {
	serves = true
	if len(os.Args) == 2 && os.Args[0] == Name {
		guard(os.Args[1])
		os.Exit(0)
	}
}
