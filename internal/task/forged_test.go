package task_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/inbox"
	"heartbeat/internal/task"
)

// However an agent fills in its message, what it sends says which agents sent it.
func TestHopsThatAnAgentWouldHide(t *testing.T) {
	for name, meta := range map[string]map[string]any{
		"as one that was put off": {"put_off": map[string]any{}, "raw_line": `{"prompt":"x"}`},
		"in other letters":        {"Hops": 0, "HOPS": 0},
		"in a part of its own":    {"metadata": map[string]any{"hops": 0}},
	} {
		t.Run(name, func(t *testing.T) {
			at := time.Now().Add(time.Hour)
			own, err := inbox.Open(newBox(t, `{"id":"job","prompt":"x","hops":3}`+"\n").Path(), inbox.Options{Now: func() time.Time { return at }})
			require.NoError(t, err)
			deliverTo(t, own, self.PID)
			_, err = task.Enqueue(t.Context(), own, own, self, inbox.Message{ID: "next", Text: "go on", Metadata: meta, NotBefore: at.Add(time.Minute)}, 0)
			require.NoError(t, err)
			in(t, own, func(tx *inbox.Tx) { require.NoError(t, tx.Acknowledge("")) })
			at = at.Add(time.Hour)
			deliverTo(t, own, self.PID)
			now, err := task.InFlight(own, self)
			require.NoError(t, err)
			assert.Equal(t, []any{"next", "go on", 4}, []any{now.ID, now.Text, now.Hops})
		})
	}
}

func TestHopsThatAreNull(t *testing.T) {
	box := newBox(t, `{"prompt":"x","hops":null}`+"\n")
	deliverTo(t, box, self.PID)
	_, err := task.Enqueue(t.Context(), box, box, self, inbox.Message{Text: "x"}, 0)
	require.ErrorIs(t, err, task.ErrHops)
}
