package hosting

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/disk"
)

// A log that is rotated by a copy and a cut goes on being followed.
func TestALogThatIsCut(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	require.NoError(t, os.WriteFile(path, []byte("one\ntwo\n"), 0o600))
	file, err := disk.OpenForeign(path, os.O_RDONLY)
	require.NoError(t, err)
	defer file.Close() // only read
	var shown []string
	show := func(line []byte) error { shown = append(shown, string(line)); return nil }
	at, err := printLog(file, 0, false, show)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, []byte("three\n"), 0o600))
	_, err = printLog(file, at, false, show)
	require.NoError(t, err)
	assert.Equal(t, []string{"one", "two", "three"}, shown)
}
