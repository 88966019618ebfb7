package supervise

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"heartbeat/internal/screen"
)

// A session may end once nothing waits that a person entered.
func TestMayEnd(t *testing.T) {
	long := time.Now().Add(-time.Hour)
	for name, c := range map[string]struct {
		before  *entered
		another bool // line is entered
		sight   screen.Kind
		ends    bool
		starts  bool // to wait at the prompt
	}{
		"nothing was entered":  {&entered{}, false, screen.Busy, true, false},
		"entered just now":     {&entered{}, true, screen.Ready, false, true},
		"at work on it":        {&entered{lines: true, waiting: long}, false, screen.Busy, false, false},
		"entered, and at rest": {&entered{lines: true, waiting: long}, false, screen.Unknown, true, true},
		"entered once more":    {&entered{lines: true, waiting: long}, true, screen.Ready, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			if c.another {
				c.before.noteLine()
			}
			assert.Equal(t, c.ends, c.before.mayEnd(c.sight))
			assert.Equal(t, c.starts, !c.before.waiting.IsZero())
		})
	}
}
