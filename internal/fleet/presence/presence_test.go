package presence

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestValue(t *testing.T) {
	a := Agent{Agent: "one", EverySeconds: 1.5, Started: time.Unix(1, 0).UTC(), Holds: []Hold{{ID: "a", State: InFlight}}}
	raw, err := a.Value()
	require.NoError(t, err)
	back, err := Parse(raw)
	require.NoError(t, err)
	assert.Equal(t, a, back)
	assert.Equal(t, 1500*time.Millisecond, back.Every())
	_, err = Parse([]byte("{"))
	require.Error(t, err)
}
