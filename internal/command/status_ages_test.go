package command

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
)

// What only became older is nothing new to show.
func TestSameButForAges(t *testing.T) {
	const text, json = "in flight  a since 14:00 (%s ago), attempt 1\nwhy  (soon) since (%s ago)", `{"in_flight":{"age_seconds":%s,"attempt":1},"why":"x (%s ago)"}`
	for _, form := range []string{text, json} {
		for name, c := range map[string]struct {
			a, b string
			want bool
		}{
			"older":      {fmt.Sprintf(form, "5s", "1h"), fmt.Sprintf(form, "6s", "1h 1m"), true},
			"nothing":    {fmt.Sprintf(form, "5s", "1m"), fmt.Sprintf(form, "5s", "1m"), true},
			"more":       {fmt.Sprintf(form, "5s", "1m"), fmt.Sprintf(form, "5s", "1m") + "!", false},
			"other text": {fmt.Sprintf(form, "5s", "1m"), "x" + fmt.Sprintf(form, "5s", "1m"), false},
		} {
			assert.Equal(t, c.want, sameButForAges(c.a, c.b), "%s %s", name, form)
		}
	}
	assert.False(t, sameButForAges("it was (5 sec ago)", "it was (6 sec ago)"), "not what an age looks like")
}
