package managed

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestTakeSettings(t *testing.T) {
	for name, c := range map[string]struct{ command, rest, given []string }{
		"none":            {[]string{"claude", "begin"}, []string{"claude", "begin"}, nil},
		"apart":           {[]string{"claude", "--settings", "a", "begin"}, []string{"claude", "begin"}, []string{"a"}},
		"joined":          {[]string{"claude", "-c", "--settings=a"}, []string{"claude", "-c"}, []string{"a"}},
		"in the prompt":   {[]string{"claude", "--", "--settings"}, []string{"claude", "--", "--settings"}, nil},
		"without a value": {[]string{"claude", "--settings"}, []string{"claude", "--settings"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			rest, given := takeSettings(c.command)
			assert.Equal(t, c.rest, rest)
			if c.given == nil {
				assert.Empty(t, given)
			} else {
				assert.Equal(t, c.given[0], given)
			}
		})
	}
}
