package lines

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// FuzzBack holds the search for the start of lines against looking at all
// newlines from the start on.
func FuzzBack(f *testing.F) {
	for _, s := range []string{"", "a", "\n", "a\nb", "a\n\nb\n", "\n\n\n", strings.Repeat("x", chunkSize) + "\ny\n", strings.Repeat("\n", chunkSize+1)} {
		for n := range 3 {
			f.Add([]byte(s), len(s), n)
			f.Add([]byte(s), len(s)/2, n)
		}
	}
	f.Fuzz(func(t *testing.T, content []byte, off, n int) {
		off = int(uint(off) % uint(len(content)+1))
		n = int(uint(n) % 50)
		ends := []int64{} // behind each newline before off
		for i := range off {
			if content[i] == '\n' {
				ends = append(ends, int64(i)+1)
			}
		}
		want := int64(0)
		if len(ends) > n {
			want = ends[len(ends)-1-n]
		}
		got, err := Back(bytes.NewReader(content), int64(off), n)
		require.NoError(t, err)
		assert.Equal(t, want, got)
		if n == 0 {
			got, err = Start(bytes.NewReader(content), int64(off))
			require.NoError(t, err)
			assert.Equal(t, want, got)
		}
	})
}
