package doctor

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// docs/operate.md has the very table of the checks.
func TestTableOfTheDocs(t *testing.T) {
	doc, err := os.ReadFile("../../../docs/operate.md")
	require.NoError(t, err)
	_, doctors, found := strings.Cut(string(doc), "| check | what it looks at | sessions of | fsck |\n|---|---|---|---|\n")
	require.True(t, found)
	doctors, _, _ = strings.Cut(doctors, "\n\n")
	var want []string
	for _, r := range table() {
		of := map[scope]string{ofClaude: "Claude Code", ofCodex: "Codex", ofClaude | ofCodex: "both"}[r.of&(ofClaude|ofCodex)]
		fsck := map[bool]string{true: "yes"}[r.of&ofFsck != 0]
		want = append(want, "| `"+r.id+"` | "+r.looks+" | "+of+" | "+fsck+" |")
	}
	assert.Equal(t, strings.Join(want, "\n"), doctors)
}

// What fsck looks at is of an inbox alone, and each check has a name of its own.
func TestRows(t *testing.T) {
	ids := map[string]bool{}
	for _, r := range table() {
		assert.False(t, ids[r.id], r.id)
		ids[r.id] = true
		assert.True(t, r.of&ofFsck == 0 || r.of&ofBox != 0 && r.of&ofWiring == 0, r.id)
	}
}
