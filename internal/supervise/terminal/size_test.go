package terminal

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestSize(t *testing.T) {
	for text, want := range map[string]Size{"24x80": {24, 80}, "1X1": {1, 1}, "65535x65535": {65535, 65535}} {
		var s Size
		require.NoError(t, s.Set(text), text)
		assert.Equal(t, want, s)
	}
	for _, text := range []string{"", "x", "24", "24x", "x80", "0x80", "24x0", "-1x80", "24x80x1", "65536x1", "24 x 80", "1.5x2"} {
		s := DefaultSize
		require.Error(t, s.Set(text), text)
		assert.Equal(t, "50x200", s.String(), "it stays what it was")
	}
}
