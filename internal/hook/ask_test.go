package hook

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// endIn returns where objectEnd finds the end of input that grows piece by piece, or -1.
func endIn(b []byte, piece int) int {
	var o objectEnd
	for n := min(piece, len(b)); ; n = min(n+piece, len(b)) {
		if o.reached(b[:n]) {
			return o.at
		}
		if n == len(b) {
			return -1
		}
	}
}

// FuzzObjectEnd: an object ends at its last byte and nowhere before, in whatever pieces it arrives.
func FuzzObjectEnd(f *testing.F) {
	for _, s := range []string{"{}", `{"a":"}"}`, `{"a":"\"}\\"}`, `{"a":[{},{"b":1}]}`, `{"a":`, "[]", "null", `{}{}`, `"{"`, "}", "{]", ""} {
		for _, piece := range []uint8{1, 2, 7, 255} {
			f.Add([]byte(s), piece)
		}
	}
	f.Fuzz(func(t *testing.T, b []byte, piece uint8) {
		b = bytes.Trim(b, " \t\r\n") // as readObject does
		at := endIn(b, max(1, int(piece)))
		assert.Equal(t, endIn(b, len(b)+1), at, "in pieces of %d", piece)
		if json.Valid(b) && b[0] == '{' {
			assert.Equal(t, len(b)-1, at)
		}
	})
}

// fed returns a pipe that is written piece by piece and then closed.
func fed(t *testing.T, pieces ...string) *os.File {
	t.Helper()
	r, w, err := os.Pipe()
	require.NoError(t, err)
	t.Cleanup(func() { _ = r.Close() })
	go func() {
		defer w.Close()
		for _, p := range pieces {
			if _, err := w.WriteString(p); err != nil {
				return // the reader has stopped
			}
		}
	}()
	return r
}

func TestReadObject(t *testing.T) {
	at := func() error { return nil }
	for _, c := range []struct {
		pieces []string
		want   string
	}{
		{nil, ""},
		{[]string{" \n", "\t"}, ""},
		{[]string{" {", `"a"`, ":1}", "\n"}, `{"a":1}`},
		{[]string{strings.Repeat(" ", 1<<20), "{", strings.Repeat(" ", 1<<20), "}"}, "{" + strings.Repeat(" ", 1<<20) + "}"},
		{[]string{"{", `"a":`}, `{"a":`},
	} {
		got, err := readObject(int(fed(t, c.pieces...).Fd()), at)
		require.NoError(t, err)
		assert.Equal(t, c.want, strings.TrimRight(string(got), "\n"))
	}
}

// White space is bounded like all other input, and takes no memory.
func TestReadObjectIsBounded(t *testing.T) {
	megabyte := strings.Repeat(" ", 1<<20)
	pieces := make([]string, maxInput>>20+2)
	for i := range pieces {
		pieces[i] = megabyte
	}
	reads := 0
	_, err := readObject(int(fed(t, pieces...).Fd()), func() error { reads++; return nil })
	require.ErrorContains(t, err, "longer than 33554432 bytes")
	assert.GreaterOrEqual(t, reads, maxInput/(8<<10), "what it reads into did not grow")
}
