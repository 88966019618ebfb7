package docs

import (
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"

	"heartbeat/internal/see"
)

// docs/operate.md has an item for each kind of trouble, in the order and with the urgency of the
// code's table.
func TestTroublesOfTheDocs(t *testing.T) {
	var said, are [][]string
	list := section(t, "docs/operate.md", "## Troubles")
	for _, m := range regexp.MustCompile("(?m)^- `([a-z-]+)` \\(([a-z]+)\\): ").FindAllStringSubmatch(list, -1) {
		said = append(said, m[1:])
	}
	for _, row := range see.Rows {
		are = append(are, []string{string(row.Kind), string(row.Urgency)})
	}
	assert.Equal(t, are, said)
}
