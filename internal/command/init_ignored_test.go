package command

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// What was added comes out again, and the rest is as it was.
func FuzzAdded(f *testing.F) {
	for _, content := range []string{"", "a", "a\n", "a\r\nb", "a\r\n", "\n", ignoreMark, ignoreMark + "\n"} {
		f.Add([]byte(content), "")
		f.Add([]byte(content), "more\n")
	}
	f.Fuzz(func(t *testing.T, content []byte, more string) {
		const line = "/work/"
		if _, had := withoutIgnored(content, line, false); had {
			t.Skip("it has a block already")
		}
		cut := len(content) > 0 && content[len(content)-1] != '\n'
		added := withIgnored(content, line)
		taken, had := withoutIgnored(added, line, cut)
		assert.True(t, had)
		assert.Equal(t, string(content), string(taken))

		taken, had = withoutIgnored(append(added, more...), line, cut)
		assert.True(t, had)
		if more != "" && cut {
			assert.Equal(t, string(content)+endOf(content)+more, string(taken))
		} else {
			assert.Equal(t, string(content)+more, string(taken))
		}
	})
}
