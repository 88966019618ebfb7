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
	heard := time.Unix(100, 0)
	assert.Equal(t, 500*time.Millisecond, back.Lives(heard, heard.Add(4*time.Second)))
	assert.Zero(t, back.Lives(heard, heard.Add(5*time.Second)))
	assert.Equal(t, time.Minute, (&Presence{}).Lives(heard, heard))
	assert.Zero(t, (&Presence{EverySeconds: 1, Ended: true}).Lives(heard, heard))
	_, err = ParsePresence([]byte("{"))
	require.Error(t, err)
}
