package book

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// names is a book that knows the whole price of some entries.
type names map[string]bool

func (names) Want(...string)                       {}
func (n names) complete(name string, _ int64) bool { return n[name] }

func TestQueue(t *testing.T) {
	now := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	known := names{}
	q := Queue[string]{book: known, outcome: func(name string) (string, int64) { return name, 1 }}
	assert.Empty(t, q.Rest())
	q.Add(now, "one", "two")
	q.Add(now.Add(2*time.Second), "three", "four")
	known["two"], known["four"] = true, true
	assert.Empty(t, q.Ready(now), "the first one waits, and the second for it")
	known["one"] = true
	assert.Equal(t, []string{"one", "two"}, q.Ready(now))
	assert.Empty(t, q.Ready(now.Add(4*time.Second)))
	assert.Equal(t, []string{"three", "four"}, q.Ready(now.Add(5*time.Second)), "nothing waits for ever")
	q.Add(now, "five")
	assert.Equal(t, []string{"five"}, q.Ready(now.Add(-time.Hour)), "the clock was set back")
	q.Add(now, "six", "seven")
	assert.Equal(t, []string{"six", "seven"}, q.Rest())
	assert.Empty(t, q.Rest())
}
