package docs

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// Whoever adds a sentence takes another one out.
func TestWords(t *testing.T) {
	count := func(page string) int { return len(strings.Fields(read(t, page))) }
	sum := 0
	for _, page := range documents(t) {
		if page == "README.md" || strings.HasPrefix(page, "docs/") {
			sum += count(page)
		}
	}
	assert.LessOrEqual(t, sum, 30_000, "words of README.md and docs")
	assert.LessOrEqual(t, count("docs/design.md"), 6_000, "words of docs/design.md")
}
