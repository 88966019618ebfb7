package words_test

import (
	"io"
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
