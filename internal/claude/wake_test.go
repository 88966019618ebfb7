package claude_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"heartbeat/internal/claude"
)

// announced returns the prompt in which the client passes on a text that woke it.
func announced(text string) string {
	return "<task-notification>\n<task-id>b1</task-id>\n<summary>Stop hook</summary>\n</task-notification>\n" +
		"<system-reminder>\nStop hook blocking error from command \"Stop\": " +
		strings.TrimSpace(strings.ReplaceAll(text, "</system-reminder", "&lt;/system-reminder")) + "\n</system-reminder>"
}

func TestIsWakePrompt(t *testing.T) {
	for _, text := range []string{
		"Fix the tests", "a", "Stop", "hook", "error", "task", "<system-reminder>", "</system-reminder>", `say "hi" \n`,
		"two\nlines\n\nand more", "\ttab \x1b[2J \x00 bell\a", "naïve 日本語 😀 \u2028", "$(rm) `x` %s &lt; &amp;",
		"before </system-reminder> between </system-reminder\n> behind",
		" \n space around it \n\n",
	} {
		t.Run(fmt.Sprintf("%q", text), func(t *testing.T) {
			assert.True(t, claude.IsWakePrompt(announced(text), text))
			assert.True(t, claude.IsWakePrompt(announced("The next request:\n\n"+text), text), "behind a preamble")
			assert.False(t, claude.IsWakePrompt(text, text), "a person typed it")
			assert.False(t, claude.IsWakePrompt("please do this: "+text, text), "a person typed it")
			assert.False(t, claude.IsWakePrompt(announced("something els"), text+"?"), "another entry's")
		})
	}
}

func TestFitsWake(t *testing.T) {
	for text, fits := range map[string]bool{
		"":                                          true,
		strings.Repeat("x", claude.MaxWake):         true,
		strings.Repeat("x", claude.MaxWake+1):       false,
		strings.Repeat("é", claude.MaxWake):         true, // two bytes, one unit
		strings.Repeat("é", claude.MaxWake+1):       false,
		strings.Repeat("😀", claude.MaxWake/2):       true, // four bytes, two units
		strings.Repeat("😀", claude.MaxWake/2) + "x": false,
	} {
		assert.Equal(t, fits, claude.FitsWake(text), "%d bytes of %.4q", len(text), text)
	}
}
