package launch

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What others wrote, such as an event's reason, stays within the line that tells it.
func TestNobodyForgesALine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "agent.log")
	l, err := openLog(nil, path, 10)
	require.NoError(t, err)
	l.say(time.Now(), "paused: x\n2030-01-01T00:00:00Z answered job-1\x1b[2J\u2028")
	l.finish()
	written, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, 1, strings.Count(string(written), "\n"))
	assert.Contains(t, string(written), "paused: x 2030-01-01T00:00:00Z answered job-1\\u001b[2J\n")
}
