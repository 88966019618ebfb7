package transcript

import (
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/hosting/stream"
	"heartbeat/internal/testing/crash"
)

const largeText = 50 << 20

// large50 hosts a session in a folder (argument 1) whose client prints a large result
// between two small ones.
func large50() int {
	o := in(os.Args[1])
	s := Open(o)
	result := io.MultiReader(
		strings.NewReader(string(message(1).Raw)+"\n"+`{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t","content":"`),
		&letters{left: largeText}, strings.NewReader("\"}]}}\n"+string(message(3).Raw)))
	for r := stream.NewReader(result, nil); ; {
		m, err := r.Next()
		if err == io.EOF {
			return fail(closed(s))
		}
		if err != nil {
			return fail(err)
		}
		s.Append(m)
	}
}

// letters reads as so many of one letter.
type letters struct{ left int }

func (l *letters) Read(b []byte) (int, error) {
	if l.left == 0 {
		return 0, io.EOF
	}
	n := min(len(b), l.left)
	for i := range b[:n] {
		b[i] = 'x'
	}
	l.left -= n
	return n, nil
}

func TestALargeResultNeedsBoundedMemory(t *testing.T) {
	dir := t.TempDir()
	result := crash.Child(t, "large", []string{dir})
	require.Zero(t, result.ExitCode, result.Stderr)
	assert.Less(t, result.MaxRSS, int64(600<<20))
	o := in(dir)
	var sizes []string
	for m, err := range ReadEnded(limited(t), o, 1) {
		require.NoError(t, err)
		sizes = append(sizes, fmt.Sprint(m.N, " ", len(m.Content) > largeText))
	}
	assert.Equal(t, []string{"1 false", "2 true", "3 false"}, sizes)
	var row int64
	require.NoError(t, open(t, o).QueryRow("SELECT length(content) FROM books_animator_transcripts WHERE json_valid(content)").Scan(&row))
	assert.Greater(t, row, int64(largeText))
}
