package inbox

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A batch looks for its names again each time that it gets the lock back, and
// reads only what has come since: wherever that is, it is found.
func TestFindNewReadsWhatCameSince(t *testing.T) {
	const old = "{\"id\":\"a\",\"prompt\":\"x\"}\n"
	line := func(id string) string { return strings.Replace(old, `"a"`, `"`+id+`"`, 1) }
	for name, c := range map[string]struct {
		since string // what the inbox is by then
		found map[string]string
	}{
		"nothing":          {old, map[string]string{}},
		"appended":         {old + line("b"), map[string]string{"b": FoundQueued}},
		"torn, then whole": {old + `{"id":"t","prompt":"x"}` + "\n", map[string]string{"t": FoundQueued}},
		"another file":     {line("b") + line("c") + line("d"), map[string]string{"b": FoundQueued, "c": FoundQueued}},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "inbox.jsonl")
			box, err := Open(path, Options{})
			require.NoError(t, err)
			ids := map[string]bool{"b": true, "c": true, "t": true, "answered": true}
			find := func(names *looked) map[string]place {
				tx, err := box.Begin(context.Background())
				require.NoError(t, err)
				defer func() { require.NoError(t, tx.Close()) }()
				found, err := names.findNew(tx, ids)
				require.NoError(t, err)
				return found
			}
			require.NoError(t, os.WriteFile(path, []byte(old+`{"id":"t"`), 0o600))
			var names looked
			assert.Empty(t, find(&names))
			assert.EqualValues(t, len(old), names.queue, "up to the line that is being written")

			require.NoError(t, os.WriteFile(path, []byte(c.since), 0o600))
			require.NoError(t, os.WriteFile(box.ResultsPath(), []byte(`{"id":"answered","entry_id":"e"}`+"\n"), 0o600))
			got := map[string]string{}
			for id, p := range find(&names) {
				got[id] = p.where
			}
			c.found["answered"] = FoundAnswered
			assert.Equal(t, c.found, got)
			assert.Equal(t, looked{}, names, "where those are may change")
		})
	}
}
