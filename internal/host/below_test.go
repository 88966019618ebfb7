package host

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestIsBelow(t *testing.T) {
	self := os.Getpid()
	assert.True(t, IsBelow(self, self))
	assert.True(t, IsBelow(self, os.Getppid()))
	assert.False(t, IsBelow(os.Getppid(), self))
	assert.False(t, IsBelow(self, 0))
	assert.False(t, IsBelow(-1, self))
	assert.False(t, IsBelow(0, 0))
}
