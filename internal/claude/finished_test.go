package claude_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/claude"
)

func TestFinished(t *testing.T) {
	const text = "do this"
	prompted := lineAt(2, `"type":"user","message":{"role":"user","content":"and now?"}`)
	stopped := lineAt(2, `"type":"user","message":{"role":"user","content":[{"type":"text","text":"[Request interrupted by user]"}]}`)
	tool := lineAt(2, `"type":"user","message":{"role":"user","content":[{"type":"tool_result","content":"x"}]}`)
	calls := lineAt(1, `"type":"assistant","message":{"role":"assistant","model":"m","content":[{"type":"tool_use","id":"t"}]}`)
	failed := lineAt(2, `"type":"assistant","isApiErrorMessage":true,"message":{"model":"<synthetic>"}`)
	handed, did, ended := feedback(0.1, text), answerLine(1, "did it"), summaryLine(3)
	for name, c := range map[string]struct {
		lines []string
		want  string
	}{
		"answered":                      {[]string{handed, summaryLine(0.2, text), did, ended}, "did it"},
		"with tools":                    {[]string{handed, calls, tool, answerLine(2.5, "did it all"), ended}, "did it all"},
		"the last text counts":          {[]string{handed, did, calls, tool, ended}, "did it"},
		"beside another hook":           {[]string{handed, feedback(0.2, "mend it"), did, feedback(2, "mend that"), ended}, "did it"},
		"and the session went on":       {[]string{handed, did, ended, lineAt(4, `"type":"user","message":{"content":"more"}`), answerLine(5, "more"), summaryLine(6)}, "did it"},
		"amid the answer":               {[]string{handed, summaryLine(0.2, text), did}, ""},
		"amid the tools":                {[]string{handed, calls, tool}, ""},
		"only tools":                    {[]string{handed, calls, tool, ended}, ""},
		"a person ended it":             {[]string{handed, did, stopped, ended}, ""},
		"a person asked something else": {[]string{handed, did, prompted, answerLine(2.5, "that"), ended}, ""},
		"an error ended it":             {[]string{handed, did, failed, ended}, ""},
		"the text never arrived":        {[]string{summaryLine(0.2), did, ended}, ""},
		"only the delivering Stop":      {[]string{handed, summaryLine(0.2, text)}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "transcript.jsonl")
			require.NoError(t, os.WriteFile(path, []byte(strings.Join(append(c.lines, ""), "\n")), 0o600))
			reply, ok := claude.Delivery{Path: path, Text: text}.Finished()
			assert.Equal(t, c.want != "", ok)
			if ok {
				assert.Equal(t, c.want, reply)
			}
		})
	}
}
