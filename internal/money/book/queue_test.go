package book

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestQueue(t *testing.T) {
	now := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	known := map[string]bool{}
	complete := func(name string) bool { return known[name] }
	var q Queue[string]
	assert.Empty(t, q.All())
	q.Add(now, "one", "two")
	q.Add(now.Add(2*time.Second), "three", "four")
	known["two"], known["four"] = true, true
	assert.Empty(t, q.Ready(now, complete), "the first one waits, and the second for it")
	known["one"] = true
	assert.Equal(t, []string{"one", "two"}, q.Ready(now, complete))
	assert.Empty(t, q.Ready(now.Add(4*time.Second), complete))
	assert.Equal(t, []string{"three", "four"}, q.Ready(now.Add(5*time.Second), complete), "nothing waits for ever")
	q.Add(now, "five")
	assert.Equal(t, []string{"five"}, q.Ready(now.Add(-time.Hour), complete), "the clock was set back")
	q.Add(now, "six", "seven")
	assert.Len(t, q.All(), 2)
	assert.Equal(t, []string{"six", "seven"}, q.Rest())
	assert.Empty(t, q.All())
}
