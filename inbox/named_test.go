package inbox_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/inbox"
)

func TestNamed(t *testing.T) {
	dir := t.TempDir()
	name, err := inbox.Named(dir)
	require.NoError(t, err)
	assert.Empty(t, name)
	box, err := inbox.Open(filepath.Join(dir, "jobs.jsonl"), inbox.Options{})
	require.NoError(t, err)
	_, err = box.Append(t.Context(), inbox.Message{Text: "text"}, 0)
	require.NoError(t, err)
	name, err = inbox.Named(dir)
	require.NoError(t, err)
	assert.Equal(t, "jobs.jsonl", name)
	_, err = inbox.Named(filepath.Join(dir, "none"))
	require.NoError(t, err, "where nothing is, nothing has a name")
}

// A forged journal cannot lead to another file.
func TestNamedIsAName(t *testing.T) {
	for _, name := range []string{"../other.jsonl", "/etc/passwd", ".inbox-journal", "a/b"} {
		dir := t.TempDir()
		text := fmt.Sprintf(`{"v":1,"seq":1,"inbox":%q}`, name)
		require.NoError(t, os.WriteFile(filepath.Join(dir, ".inbox-journal"), []byte(sha256Hex(text)[:16]+" "+text+"\n"), 0o600))
		_, err := inbox.Named(dir)
		require.ErrorIs(t, err, inbox.ErrCorrupt, name)
	}
}
