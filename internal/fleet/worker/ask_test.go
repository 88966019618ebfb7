package worker

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// An agent that drains, or is connected anew, takes its request back. The server has not answered that one either.
func TestARequestThatIsTakenBackWasNotAnswered(t *testing.T) {
	var said []string
	a := &Agent{o: Options{Say: func(sentence string) { said = append(said, sentence) }}, retries: map[string]retry{asking: {tries: 1}}}
	a.pullFailed(t.Context(), fmt.Errorf("next: %w", context.Canceled))
	assert.Empty(t, said)
	assert.Equal(t, 1, a.retries[asking].tries)
	a.pullFailed(t.Context(), errors.Join(context.DeadlineExceeded))
	require.Equal(t, []string{over[asking]}, said)
	assert.Zero(t, a.retries[asking].tries)
}
