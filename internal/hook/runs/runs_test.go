package runs

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// A slow run gets nearly all of its hook's time beside others, and the last of many as much as the first.
func TestShare(t *testing.T) {
	assert.Equal(t, 8*time.Minute, share(8*time.Minute, 1))
	assert.Equal(t, 7*time.Minute, share(8*time.Minute, 2))
	assert.Equal(t, time.Minute, share(time.Minute, 1), "behind one that hangs")
	assert.Equal(t, 30*time.Second, share(8*time.Minute, 16))
	assert.Equal(t, 2*time.Second, share(4*time.Second, 2))
}
