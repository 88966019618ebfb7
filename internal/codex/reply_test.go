package codex_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/codex"
)

func TestHasReply(t *testing.T) {
	const took = `{"type":"token_usage_record","payload":{"response_id":"r"}}`
	for name, c := range map[string]struct {
		lines []string
		want  bool
	}{
		"said and counted":     {[]string{asked, said("did it"), took, counted}, true},
		"not counted yet":      {[]string{asked, said("did it")}, false},
		"counted before":       {[]string{took, said("did it")}, false},
		"another reply":        {[]string{said("did that"), took}, false},
		"said again":           {[]string{said("did it"), took, said("did it")}, false},
		"behind much else":     {[]string{strings.Repeat(tool+"\n", 10_000) + said("did it"), took}, true},
		"too far from the end": {[]string{said("did it"), took, strings.Repeat(tool+"\n", 10_000)}, false},
	} {
		path := filepath.Join(t.TempDir(), "rollout-x.jsonl")
		text := strings.Join(c.lines, "\n") + "\n"
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		assert.Equal(t, c.want, codex.HasReply(path, 0, int64(len(text)), "did it"), name)
	}
	assert.False(t, codex.HasReply("/nowhere/rollout-x.jsonl", 0, 100, "did it"))
}
