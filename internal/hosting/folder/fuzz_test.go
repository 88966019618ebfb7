package folder_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/hosting/folder"
)

// FuzzState: whatever a record holds, writing it and reading it again changes nothing.
func FuzzState(f *testing.F) {
	f.Add([]byte(`{"version":1,"sessionId":"a","status":"running","metadata":{"a":[1,"<>"]},"extra":{"x":null}}`))
	f.Add([]byte(`{"later":{"b":[1,2]},"STATUS":"failed","":1,"host":{"pid":1},"exit":null,"warnings":["\ud800"]}`))
	f.Fuzz(func(t *testing.T, given []byte) {
		var s folder.State
		if json.Unmarshal(given, &s) != nil {
			return
		}
		once, err := json.Marshal(s)
		require.NoError(t, err)
		var again folder.State
		require.NoError(t, json.Unmarshal(once, &again), "%s", once)
		twice, err := json.Marshal(again)
		require.NoError(t, err)
		assert.Equal(t, string(once), string(twice))
	})
}
