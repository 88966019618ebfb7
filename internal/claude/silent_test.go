package claude_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/agent/handed"
	"heartbeat/internal/claude"
)

func TestSilent(t *testing.T) {
	const text = "do this"
	note := lineAt(1, `"type":"user","isMeta":true,"message":{"role":"user","content":"[Your previous response had no visible output. Please continue and produce a user-visible response.]"}`)
	for name, c := range map[string]struct {
		lines  []string
		silent bool
		turn   handed.Turn
	}{
		"the text":               {[]string{feedback(0, text)}, false, handed.Unknown},
		"nothing was said":       {[]string{feedback(0, text), note}, true, handed.WithText},
		"the turn before":        {[]string{note, feedback(0, text)}, false, handed.Unknown},
		"it was asked once more": {[]string{feedback(0, text), note, answerLine(2, "did it")}, false, handed.WithText},
		"and again after a tool": {[]string{feedback(0, text), answerLine(1, "did it"), note}, true, handed.WithText},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "transcript.jsonl")
			before := answerLine(-2, "ready") + "\n"
			require.NoError(t, os.WriteFile(path, []byte(before+strings.Join(c.lines, "\n")+"\n"), 0o600))
			d := claude.Delivery{Path: path, Size: int64(len(before)), Text: text, Reply: claude.ReplySum("ready"), Fresh: true}
			assert.Equal(t, c.silent, d.Silent())
			assert.Equal(t, c.turn, d.NextTurn())
		})
	}
}
