package lines_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
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

// What a power loss left amid a line is copied as it stands, and says nothing.
func TestKeepByteForByte(t *testing.T) {
	zeros := strings.Repeat("\x00", 300<<10)
	for name, c := range map[string]struct {
		content, kept string
		torn          bool
		left          int
	}{
		"line ends":              {content: "one\r\ntwo\n\nthree\n", kept: "one\r\n\nthree\n", left: 1},
		"torn":                   {content: "one\ntwo\nthree\r", kept: "one\nthree\r", torn: true, left: 1},
		"torn, left":             {content: "one\ntwo\nthree\r", kept: "one\n", left: 1},
		"zeros amid a line":      {content: "one\nt" + zeros + "wo\r\ntwo\nthree\n", kept: "one\nt" + zeros + "wo\r\nthree\n", left: 1},
		"zeros in the last line": {content: "two\nt" + zeros + "wo", kept: "t" + zeros + "wo", torn: true, left: 1},
		"zeros before a line":    {content: "one\n" + zeros + "two\n" + zeros + "three\n", kept: "one\nthree\n", left: 1},
		"zeros at a line's end":  {content: "two" + zeros + "\nthree\n" + zeros, kept: "two" + zeros + "\nthree\n", torn: true},
	} {
		t.Run(name, func(t *testing.T) {
			var kept bytes.Buffer
			r := io.NewSectionReader(strings.NewReader("xx"+c.content), 2, int64(len(c.content)))
			_, left, err := lines.Keep(&kept, r, c.torn, func(l []byte) bool { return string(l) != "two" })
			require.NoError(t, err)
			assert.Equal(t, c.left, left)
			assert.True(t, c.kept == kept.String(), "%d bytes for %d", kept.Len(), len(c.kept))
		})
	}
}
