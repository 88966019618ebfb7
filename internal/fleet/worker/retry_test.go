package worker

import (
	"errors"
	"fmt"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/assert"

	"heartbeat/internal/fleet/link"
)

// What the end of the connection cut off is not said beside it, and does not take the place of what is said next.
func TestWhatIsSaidOfFailures(t *testing.T) {
	var said []string
	a := &Agent{o: Options{Say: func(sentence string) { said = append(said, sentence) }}, retries: map[string]retry{}, conn: &link.Conn{}}
	cut, full := fmt.Errorf("write: %w", nats.ErrDisconnected), errors.New("the bucket is full")
	assert.False(t, a.try(showing, cut))
	assert.Empty(t, said)
	assert.False(t, a.due(showing))
	assert.False(t, a.try(showing, full))
	assert.False(t, a.try(showing, full))
	assert.False(t, a.try(showing, cut))
	lost := fmt.Errorf("write: %w", link.ErrNoQuorum)
	assert.False(t, a.try(showing, lost))
	assert.False(t, a.try(showing, lost))
	assert.True(t, a.try(showing, nil))
	assert.Equal(t, []string{full.Error(), lost.Error(), over[showing]}, said)
}
