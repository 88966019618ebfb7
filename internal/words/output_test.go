package words_test

import (
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"heartbeat/internal/words"
)

func TestTail(t *testing.T) {
	all := words.Tail{Most: 40}
	for range 100 {
		n, err := all.Write([]byte("0123456789"))
		assert.Equal(t, 10, n)
		assert.NoError(t, err)
		assert.Less(t, len(all.String()), 41)
	}
	assert.Equal(t, strings.Repeat("0123456789", 4), all.String())
	_, _ = all.Write([]byte(strings.Repeat("x", 1000) + "end"))
	assert.Equal(t, strings.Repeat("x", 37)+"end", all.String())
	_, written := all.Kept()
	assert.Equal(t, 2003, written)
}

// A flood takes little more memory than what is kept of it.
func TestTailOfAFlood(t *testing.T) {
	const most, chunk = 8 << 20, 32 << 10
	all, text := words.Tail{Most: most}, make([]byte, chunk)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for range 4 * most / chunk {
		_, _ = all.Write(text)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	assert.Less(t, after.HeapAlloc-before.HeapAlloc, uint64(2*most))
	runtime.KeepAlive(&all)
}

func TestHead(t *testing.T) {
	all := words.Head{Most: 15}
	for range 2 {
		n, err := all.Write([]byte("0123456789"))
		assert.Equal(t, 10, n)
		assert.NoError(t, err)
	}
	assert.True(t, all.Over)
	assert.Equal(t, "012345678901234", all.String())
}

// What a command prints is copied, and a copy asks for more than Write.
func TestHeadOfACopy(t *testing.T) {
	all := words.Head{Most: 15}
	n, err := io.Copy(&all, io.LimitReader(strings.NewReader(strings.Repeat("x", 1000)), 1000))
	assert.NoError(t, err)
	assert.EqualValues(t, 1000, n)
	assert.True(t, all.Over)
	assert.Equal(t, strings.Repeat("x", 15), all.String())
}
