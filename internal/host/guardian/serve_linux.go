package guardian

import "os"

// serves is that this program can be a guardian.
var serves bool

// Serve is to be the first that a program does which calls [Post]. It does not
// return where this process is a guardian.
func Serve() {
	serves = true
	if len(os.Args) == 2 && os.Args[0] == Name {
		guard(os.Args[1])
		os.Exit(0)
	}
}
