package see_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/inbox"
	"heartbeat/internal/see"
	recovery "heartbeat/recover"
)

// Where a file server's clock is ahead, a transcript that grows is always a little younger than now. After the clock
// was set back, so are a delivery and a transcript that has rested since. Neither stands still.
func TestStillByTimesInTheFuture(t *testing.T) {
	for name, c := range map[string]struct{ delivered, written, since int }{
		"rests":                       {-30, -20, -20},
		"a file server's clock":       {-30, 1, 0},
		"the clock was set back":      {60, 61, 0},
		"set back, written to since":  {60, -1, 0},
		"set back before an old line": {60, -30, 0},
	} {
		t.Run(name, func(t *testing.T) {
			transcript := filepath.Join(t.TempDir(), "t.jsonl")
			require.NoError(t, os.WriteFile(transcript, []byte("{}\n"), 0o600))
			require.NoError(t, os.Chtimes(transcript, time.Time{}, at(c.written)))
			evidence := recovery.Evidence{Transcript: transcript}
			still := see.StandsStill(facts(func(f *see.Facts) {
				f.Sessions = session(func(s *see.Session) { s.StartedAt = ptr(-300) })
				f.InFlight = inFlight(func(d *inbox.Delivery) { d.DeliveredAt, d.Evidence = at(c.delivered), evidence.Encode() })
			}))
			assert.Equal(t, at(c.since), still.Since.UTC())
			assert.NotEmpty(t, still.Fingerprint)
		})
	}
}
