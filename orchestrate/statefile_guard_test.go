package orchestrate_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"heartbeat/orchestrate"
)

func TestOutOfIterations(t *testing.T) {
	assert.Contains(t, orchestrate.State{Iteration: 1, MaxIterations: 1}.Limit(), "has had its 1 iterations")
	assert.Empty(t, orchestrate.State{Iteration: 255, MaxIterations: 256}.Limit())
	assert.Empty(t, orchestrate.State{Iteration: 1 << 40}.Limit(), "0 is no limit")
}
