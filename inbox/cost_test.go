package inbox_test

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// spent returns what f allocates and, where the kernel tells (proc(5), io), reads.
func spent(t testing.TB, f func()) (allocated, read uint64) {
	t.Helper()
	var before, after runtime.MemStats
	readBefore := bytesRead(t)
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc, bytesRead(t) - readBefore
}

func bytesRead(t testing.TB) uint64 {
	t.Helper()
	b, err := os.ReadFile("/proc/self/io")
	if err != nil {
		return 0
	}
	first, _, _ := strings.Cut(string(b), "\n")
	n, err := strconv.ParseUint(strings.TrimPrefix(first, "rchar: "), 10, 64)
	require.NoError(t, err)
	return n
}

// A turn costs only the lines that it handles: 200 MB before and behind them are not read.
func TestTurnReadsItsLinesOnly(t *testing.T) {
	const size = 200 << 20
	for name, at := range map[string]int64{"start": 0, "middle": size / 2, "end": size - 64} {
		t.Run(name, func(t *testing.T) {
			box := newBox(t, "")
			f, err := os.OpenFile(box.Path(), os.O_RDWR, 0)
			require.NoError(t, err)
			defer f.Close()
			require.NoError(t, f.Truncate(size)) // sparse: unwritten parts take no space
			if at > 0 {
				_, err = f.WriteAt([]byte("\n"), at-1)
				require.NoError(t, err)
			}
			_, err = f.WriteAt([]byte("one\ntwo\nthree\n"), at)
			require.NoError(t, err)
			write(t, beside(box, ".inbox-offset"), fmt.Sprint(at))

			require.Equal(t, "one", turn(t, box))
			var text string
			allocated, read := spent(t, func() { text = turn(t, box) })
			assert.Equal(t, "two", text)
			assert.Less(t, allocated, uint64(1<<20), "bytes allocated")
			assert.Less(t, read, uint64(256<<10), "bytes read")
			assert.Equal(t, fmt.Sprint(at+4), cursorFile(t, box))
		})
	}
}

// Old results cost nothing either.
func TestTurnDoesNotReadTheResults(t *testing.T) {
	box := newBox(t, strings.Repeat("entry\n", 20))
	write(t, box.ResultsPath(), "")
	require.NoError(t, os.Truncate(box.ResultsPath(), 200<<20))
	require.Equal(t, "entry", turn(t, box))
	require.Equal(t, "entry", turn(t, box))
	allocated, read := spent(t, func() { turn(t, box) })
	assert.Less(t, allocated, uint64(1<<20))
	assert.Less(t, read, uint64(256<<10))
}

// Lines of many sizes, around those that readers like to buffer.
func TestLineSizes(t *testing.T) {
	t.Parallel()
	for _, size := range []int{1, 4<<10 - 1, 4 << 10, 4<<10 + 1, 64 << 10, 64<<10 + 1, 68 << 10, 68<<10 + 1, 1 << 20} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			long := string(bytes.Repeat([]byte("x"), size))
			box := newBox(t, long+"\n"+long+"\r\nlast\n")
			assert.True(t, turn(t, box) == long, "whole")
			assert.True(t, turn(t, box) == long, "whole, without its CR")
			assert.Equal(t, "last", turn(t, box))
		})
	}
}
