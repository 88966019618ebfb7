package notify

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

// Help is what a helper's process does.
var Help = help

// WithBareTimes is a state as older releases wrote it.
func WithBareTimes(t *testing.T, text []byte) []byte {
	var all map[string]any
	require.NoError(t, json.Unmarshal(text, &all))
	holding, _ := all["holding"].(map[string]any)
	for key, told := range holding {
		holding[key] = told.(map[string]any)["at"]
	}
	older, err := json.Marshal(all)
	require.NoError(t, err)
	return older
}
