package client

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The launcher's sessions run the person's own status line, whichever of the client's files it is in.
func TestManagedStatusLine(t *testing.T) {
	all := some(3)
	r := newRig(t, own).add(all...)
	shown := filepath.Join(t.TempDir(), "shown")
	r.WriteProjectSettings(map[string]any{"statusLine": map[string]any{"type": "command", "command": "head -c 13 >> '" + shown + "'; echo MY LINE"}})
	w, _ := r.managing(within(t)).wait()
	assert.Equal(t, worked{Reason: "drained", Answered: 3, Sessions: 1}, w)
	text, err := os.ReadFile(shown)
	require.NoError(t, err)
	assert.Regexp(t, `^(\{"session_id")+$`, string(text))
}
