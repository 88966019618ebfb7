package stream

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/testing/crash"
)

const largeText = 50 << 20

// large50 hosts a session in a folder (argument 1) whose client prints a large result
// between two small ones.
func large50() int {
	s, err := OpenTranscript(context.Background(), in(os.Args[1]))
	if err != nil {
		panic(err)
	}
	result := io.MultiReader(
		strings.NewReader(string(message(1).Raw)+"\n"+`{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t","content":"`),
		&letters{left: largeText}, strings.NewReader("\"}]}}\n"+string(message(3).Raw)))
	if _, err := Read(result, nil, func(m Message) { s.Append(m) }); err != nil {
		panic(err)
	}
	if err := s.Flush(context.Background()); err != nil {
		panic(err)
	}
	if err := s.Show(context.Background()); err != nil {
		panic(err)
	}
	return 0
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
	o := place(t)
	result := crash.Child(t, "large", []string{o.DB.Path()[:len(o.DB.Path())-len("/host.db")]})
	require.Zero(t, result.ExitCode, result.Stderr)
	t.Logf("%d MiB", result.MaxRSS>>20)
	if !testing.Short() { // the race detector, with which short tests run, needs more
		assert.Less(t, result.MaxRSS, int64(200<<20))
	}
	var sizes []string
	for m, err := range ReadEndedTranscript(t.Context(), o, 1) {
		require.NoError(t, err)
		sizes = append(sizes, fmt.Sprint(m.N, " ", len(m.Content) > largeText))
	}
	assert.Equal(t, []string{"1 false", "2 true", "3 false"}, sizes)
	assert.Equal(t, 3, rowOf(t, o))
}
