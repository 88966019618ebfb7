package message

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestValue(t *testing.T) {
	a := Presence{Agent: "one", EverySeconds: 1.5, Started: time.Unix(1, 0).UTC(), Holds: []Hold{{ID: "a", State: InFlight}}}
	raw, err := json.Marshal(a)
	require.NoError(t, err)
	back, err := ParsePresence(raw)
	require.NoError(t, err)
	assert.Equal(t, a, back)
	assert.Equal(t, 1500*time.Millisecond, back.Every())
	_, err = ParsePresence([]byte("{"))
	require.Error(t, err)
}
