package babysitter

import (
	"regexp"
	"sync"
)

// lazily compiles a pattern on first use: most commands that link this package never call
// babysitter.
func lazily(pattern string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(pattern) })
}
