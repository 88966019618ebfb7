package lines_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/disk"
	"heartbeat/internal/lines"
)

// A hole is not read, however long it is.
func TestEachSkipsHoles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	require.NoError(t, os.WriteFile(path, []byte("one\n"), 0o600))
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	require.NoError(t, err)
	_, err = f.WriteAt([]byte("two\nthree"), 1<<40)
	require.NoError(t, errors.Join(err, f.Close()))
	file, err := disk.OpenRead(path)
	require.NoError(t, err)
	defer func() { require.NoError(t, file.Close()) }()
	var got []string
	require.NoError(t, lines.Each(io.NewSectionReader(file, 0, file.Info().Size), 7, func(start, end int64, l []byte, _ bool) bool {
		got = append(got, fmt.Sprintf("%d-%d %s", start, end, l))
		return true
	}))
	const base = 7 + 1<<40
	assert.Equal(t, []string{"7-11 one", fmt.Sprintf("%d-%d two", base, base+4), fmt.Sprintf("%d-%d three", base+4, base+9)}, got)
}
