package command

import (
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
)

// Each word is none of ours, stands once, and leads to verbs that there are.
func TestHabits(t *testing.T) {
	named, seen, ours := regexp.MustCompile(`heartbeat ([a-z-]+)`), map[string]bool{}, map[string]bool{}
	for _, g := range heartbeat().Groups {
		for _, v := range g.Verbs {
			ours[v.Name] = true
		}
	}
	for _, b := range heartbeat().Beside {
		ours[b.Name] = true
	}
	for _, h := range habits {
		for _, m := range named.FindAllStringSubmatch(h.here, -1) {
			assert.True(t, ours[m[1]], m[1])
		}
		for _, word := range h.words {
			assert.False(t, ours[word] || seen[word], word)
			assert.Equal(t, h.here, habit(word))
			seen[word] = true
		}
	}
	assert.Empty(t, habit("sned"))
}
