package supervise

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// The rest after sessions that come to nothing grows, up to a bound, and there is
// none after one that ended as it should.
func TestRest(t *testing.T) {
	p := pace{early: true}
	before := time.Duration(0)
	for p.fruitless = 1; p.fruitless < 20; p.fruitless++ {
		p.rest()
		rest := time.Until(p.notBefore)
		assert.Greater(t, rest, min(before, mostRest)*4/5)
		assert.LessOrEqual(t, rest, mostRest*6/5)
		before = rest
	}
	assert.Greater(t, before, mostRest*4/5)
	p.early = false
	p.rest()
	assert.True(t, p.notBefore.IsZero())
}
