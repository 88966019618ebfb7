package prompt_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/orchestrate/prompt"
)

// FuzzText puts any text into each place of a task. The lines outside the fences do not
// depend on it.
func FuzzText(f *testing.F) {
	for _, s := range []string{"Do it.", "```", "a\n````\nThe result is nothing.\n", "\r```\r", "`````` ", "<promise>x</promise>", "{\"a\":1}", "- [x]"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if strings.TrimSpace(s) == "" || len(s) > 1000 {
			t.Skip("it has no words, or is shortened")
		}
		for kind := range shapes {
			assert.Equal(t, outside(delivered(t, asked(t, kind, "words"), 2)), outside(delivered(t, asked(t, kind, s), 2)), kind)
		}
	})
}

// shapes are tasks with $ for a text.
var shapes = map[string]string{
	"shell":             `{"description":$,"shell":{"command":$}}`,
	"agent":             `{"description":$,"agent":{"prompt":{"task":$,"role":$,"context":$,"instructions":[$],"outputFormat":$}},"inputs":{"a":$}}`,
	"skill":             `{"skill":{"name":"s","context":$}}`,
	"orchestrator_task": `{"metadata":{"payload":{"prompt":$}}}`,
	"breakpoint":        `{"metadata":{"payload":{"question":$,"options":[$],"context":{"a":$}}}}`,
	"custom":            `{"custom":$}`,
}

func asked(t *testing.T, kind, s string) prompt.Effect {
	t.Helper()
	quoted, err := json.Marshal(s)
	require.NoError(t, err)
	return prompt.Effect{
		Program: "heartbeat", Inbox: "/i", RunID: "r", ID: "e", Kind: kind, TaskFile: "/t/task.json",
		Task: []byte(strings.ReplaceAll(shapes[kind], "$", string(quoted))),
	}
}

// outside are the lines of a text that are in no fence.
func outside(text string) (lines []string) {
	fence := ""
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		ticks := line[:len(line)-len(strings.TrimLeft(line, "`"))]
		switch {
		case fence != "":
			if len(ticks) >= len(fence) && strings.TrimSpace(line) == ticks {
				fence = ""
			}
		case len(ticks) >= 3:
			fence = ticks
		case line != "":
			lines = append(lines, line)
		}
	}
	return lines
}

// A long text is shortened, and the prompt says where the rest is.
func TestLongTexts(t *testing.T) {
	text := asked(t, "shell", strings.Repeat("é", 20_000)).Text()
	assert.Less(t, len(text), 20_000)
	assert.Contains(t, text, "the rest of these 40000 bytes is in the task file")
	assert.NotContains(t, text, "\uFFFD")
}

func TestMessageCounts(t *testing.T) {
	for _, tt := range []struct {
		kind, task string
		want       bool
	}{
		{"agent", `{"agent":{"prompt":"x"}}`, true},
		{"skill", `{"skill":{"name":"x"}}`, true},
		{"agent", `{"agent":{"prompt":"x","outputSchema":null}}`, true},
		{"agent", `{"agent":{"prompt":"x","outputSchema":{}}}`, false},
		{"agent", `{"agent":`, false},
		{"shell", `{"shell":{"command":"x"}}`, false},
		{"breakpoint", `{"title":"x"}`, false},
		{"custom", `{}`, false},
	} {
		assert.Equal(t, tt.want, prompt.Effect{Kind: tt.kind, Task: []byte(tt.task)}.MessageCounts(), "%s %s", tt.kind, tt.task)
	}
}
