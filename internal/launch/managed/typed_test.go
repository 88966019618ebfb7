package managed

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"heartbeat/internal/screen"
)

// A session may end once nothing waits that a person entered, and not while they type a
// line.
func TestMayEnd(t *testing.T) {
	long := time.Now().Add(-time.Hour)
	for name, c := range map[string]struct {
		keys   []string
		before *typed
		ends   bool
		starts bool // to wait at the prompt
	}{
		"nothing was typed":        {nil, &typed{}, true, false},
		"the terminal answered":    {[]string{"\x1b[?1;2c", "\x1b[I"}, &typed{}, true, false},
		"a line is begun":          {[]string{"a"}, &typed{}, true, false},
		"entered just now":         {[]string{"a", "\r"}, &typed{}, false, true},
		"entered, and at rest":     {nil, &typed{entered: true, waiting: long}, true, true},
		"another line is begun":    {[]string{"a"}, &typed{entered: true, waiting: long}, false, false},
		"a line was left standing": {nil, &typed{entered: true, begun: true, at: long, waiting: long}, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			typed := c.before
			for _, k := range c.keys {
				typed.keys([]byte(k))
			}
			assert.Equal(t, c.ends, typed.mayEnd(screen.Unknown))
			assert.Equal(t, c.starts, !typed.waiting.IsZero())
		})
	}
}
