package babysitter

import (
	"regexp"
	"sync"
)

// lazily compiles a pattern when it is used first: this package is linked into a
// command that starts after every turn, and mostly asks nothing of babysitter.
func lazily(pattern string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(pattern) })
}
