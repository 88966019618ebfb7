package command_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/cli/layout"
)

// hostileInbox has entries whose ids, prompts and replies would move what stands
// beside them, if a terminal took them at their word.
func hostileInbox(t *testing.T) string {
	t.Helper()
	inbox := filepath.Join(t.TempDir(), "inbox.jsonl")
	for i, text := range []string{
		"plain", "\x1b[2J\x1b[31mred\x07", "日本語の文章と名前の長い列がここにあります", "e" + strings.Repeat("\u0301", 40), "\u202eabc\u2066def",
		"zero\u200bwidth\u2060\ufeff", "שלום עולם", "tab\tand\nlines\r\u2028more", strings.Repeat("long ", 60), "👩‍👩‍👧‍👦 🇩🇪",
	} {
		line, err := json.Marshal(map[string]any{"id": text, "prompt": text + " prompt", "n": i})
		require.NoError(t, err)
		f, err := os.OpenFile(inbox, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		require.NoError(t, err)
		_, err = f.Write(append(line, '\n'))
		require.NoError(t, err)
		require.NoError(t, f.Close())
	}
	return inbox
}

// stop has the hook acknowledge the entry in flight with that reply, and deliver
// the next one.
func stop(t *testing.T, inbox string, prompt int, reply string) {
	t.Helper()
	cmd := exec.Command("heartbeat-stop", "--inbox", inbox)
	cmd.Stdin = hookInput(t, map[string]any{
		"session_id": "3f1c2ab8-328b-4121-8f97-7f6c95137940", "prompt_id": "p", "hook_event_name": "Stop",
		"stop_hook_active": prompt > 0, "last_assistant_message": reply,
	})
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
}

// TestListsAtATerminal holds that lists have titles and fit the terminal, and that
// no text of others moves a column or acts on the terminal.
func TestListsAtATerminal(t *testing.T) {
	inbox := hostileInbox(t)
	peek := atATerminal(t, "peek", "--inbox", inbox)
	for i := range 6 {
		stop(t, inbox, i, fmt.Sprint(i)+"\x1b[1mreply\u202e to 日本語 "+strings.Repeat("and so on ", 30))
	}
	require.NoError(t, exec.Command("heartbeat", "recover", "--inbox", inbox).Run())
	require.NoError(t, exec.Command("heartbeat", "cancel", "--inbox", inbox, "--all").Run())
	for title, shown := range map[string]string{
		" #  OFFSET  ENTRY ":               peek,
		"ANSWERED  ENTRY ":                 atATerminal(t, "results", "--inbox", inbox),
		"TIME             EVENT":           atATerminal(t, "log", "--inbox", inbox),
		"LETTER        SET ASIDE  REASON ": atATerminal(t, "dead-letter", "list", "--inbox", inbox),
	} {
		assert.True(t, strings.HasPrefix(shown, title), shown)
		assert.NotRegexp(t, `[\x00-\x09\x0b\x0c\x0e-\x1f\x7f\x{0080}-\x{009f}\x{200b}\x{202a}-\x{202e}\x{2066}-\x{2069}]`, shown)
		lines := strings.Split(strings.TrimSuffix(shown, "\r\n"), "\r\n")
		assert.Greater(t, len(lines), 5, shown)
		for _, line := range lines {
			assert.LessOrEqual(t, layout.Width(line), 80, line)
		}
	}
	assert.Contains(t, atATerminal(t, "log", "--inbox", inbox), "session 3f1c2ab8")
	assert.Regexp(t, `(?m)^in flight +nothing\r$`, atATerminal(t, "status", "--inbox", inbox))
	assert.Regexp(t, `(?m)^answered +5, the last (just now|\d+s ago)\r$`, atATerminal(t, "status", "--inbox", inbox))
}

// TestColourAtATerminal paints there only, unless it is told otherwise.
func TestColourAtATerminal(t *testing.T) {
	inbox := hostileInbox(t)
	const titles = "\x1b[1mOFFSET\x1b[m"
	assert.NotContains(t, atATerminal(t, "peek", "--inbox", inbox), "\x1b", "NO_COLOR is set")
	assert.Contains(t, atATerminal(t, "peek", "--inbox", inbox, "--color", "always"), titles)
	for _, args := range [][]string{{"peek", "--inbox", inbox}, {"peek", "--inbox", inbox, "--color=auto"}} {
		piped, err := exec.Command("heartbeat", args...).Output()
		require.NoError(t, err)
		assert.NotContains(t, string(piped), "\x1b")
		assert.NotContains(t, string(piped), "OFFSET")
		assert.Len(t, regexp.MustCompile(`(?m)^\d+\t\d+\t[^\t\n]*\t[^\t\n]*\t[^\t\n]*\t[^\t\n]*$`).FindAllString(string(piped), -1), 10)
	}
}

// TestCutNames takes a name as a list shows it.
func TestCutNames(t *testing.T) {
	inbox := filepath.Join(t.TempDir(), "inbox.jsonl")
	const id = "a-name-that-is-longer-than-a-list-has-room-for"
	require.NoError(t, exec.Command("heartbeat", "send", "--inbox", inbox, "--id", id, "text").Run())
	cut := regexp.MustCompile(`a-name\S*…`).FindString(atATerminal(t, "peek", "--inbox", inbox))
	require.NotEmpty(t, cut)
	for _, args := range [][]string{{"log", "--inbox", inbox, cut, "--json"}, {"cancel", "--inbox", inbox, cut}, {"dead-letter", "show", "--inbox", inbox, cut}} {
		out, err := exec.Command("heartbeat", args...).CombinedOutput()
		require.NoError(t, err, string(out))
		assert.Contains(t, string(out), id)
	}
}
