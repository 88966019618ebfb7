package managed

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// The rest behind sessions that come to nothing grows, up to a bound, and there is
// none behind one that ended as it should.
func TestRest(t *testing.T) {
	r := &run{early: true}
	before := time.Duration(0)
	for r.fruitless = 1; r.fruitless < 20; r.fruitless++ {
		r.restBehind()
		rest := time.Until(r.notBefore)
		assert.Greater(t, rest, min(before, mostRest)*4/5)
		assert.LessOrEqual(t, rest, mostRest*6/5)
		before = rest
	}
	assert.Greater(t, before, mostRest*4/5)
	r.early = false
	r.restBehind()
	assert.True(t, r.notBefore.IsZero())
}
