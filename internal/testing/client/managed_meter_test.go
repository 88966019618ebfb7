package client

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The launcher's sessions count what they cost, and run the person's own status line,
// whichever of the client's files it is in. Quotes, a newline and $ reach the shell as the
// person wrote them.
func TestManagedMeter(t *testing.T) {
	all := some(3)
	r := newRig(t, own).add(all...)
	shown := filepath.Join(t.TempDir(), "it's shown")
	line := "name='it'\\''s shown'\nd=\"" + filepath.Dir(shown) + "\"; read -r status; echo \"${status%%:*} $CLAUDE_PID\" >> \"$d/$name\"; echo 'MY LINE'"
	r.WriteProjectSettings(map[string]any{"statusLine": map[string]any{"type": "command", "command": line, "padding": 0}})
	before, err := os.ReadFile(r.projectSettings())
	require.NoError(t, err)

	w, _ := r.managing(within(t)).wait()
	assert.Equal(t, worked{Reason: "drained", Answered: 3, Sessions: 1}, w)
	text, err := os.ReadFile(shown)
	require.NoError(t, err)
	assert.Regexp(t, `^(\{"session_id" \d+\n)+$`, string(text))
	meters, err := filepath.Glob(r.path(".meter-*"))
	require.NoError(t, err)
	meters = slices.DeleteFunc(meters, func(name string) bool { return strings.HasSuffix(name, ".lock") })
	require.Len(t, meters, 1)
	after, err := os.ReadFile(r.projectSettings())
	require.NoError(t, err)
	assert.Equal(t, string(before), string(after))
}

// What install has wired counts as well, and shows the line of the person's own settings
// below it.
func TestInstalledMeter(t *testing.T) {
	r := newRig(t, own)
	shown := filepath.Join(t.TempDir(), "shown")
	r.WriteProjectSettings(map[string]any{"statusLine": map[string]any{"type": "command", "command": "echo x >> '" + shown + "'"}})
	r.installIn(filepath.Join(r.Project, ".claude", "settings.local.json"))
	r.installIn(r.projectSettings()) // hidden by the other, which has precedence
	all := some(2)
	r.add(all...)
	w, _ := r.managing(within(t)).wait()
	assert.Equal(t, worked{Reason: "drained", Answered: 2, Sessions: 1}, w)
	assert.FileExists(t, shown)
}
