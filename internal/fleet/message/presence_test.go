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

// In a cluster the server that leads the leases may have another time than the one that leads what agents say.
func TestKeeps(t *testing.T) {
	a := Presence{EverySeconds: 20, Holds: []Hold{{ID: "a", Seq: 1, State: InFlight}, {ID: "b", Seq: 2, State: Stalled}}}
	heard := time.Unix(100, 0)
	for id, seq := range map[string]uint64{"a": 1, "b": 2, "c": 3} {
		assert.Equal(t, id == "a", a.Keeps(id, seq, heard, heard.Add(-time.Second)), "%s, taken before", id)
		assert.True(t, a.Keeps(id, seq, heard, heard.Add(time.Second)), "%s, taken since", id)
		assert.Equal(t, id == "a", a.Keeps(id, seq, heard, heard.Add(time.Hour)), "%s, by a clock that is an hour ahead", id)
	}
}
