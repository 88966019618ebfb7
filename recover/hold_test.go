package recover_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/inbox"
	recovery "heartbeat/recover"
)

// The end that an error names follows from the time of the error, however late its turn is settled.
func TestHoldUntilTheLimitThatAnErrorNamed(t *testing.T) {
	now := time.Now()
	limit := func(at time.Time) string {
		return "You've hit your session limit · resets " + at.UTC().Format("3:04pm") + " (UTC)"
	}
	for name, c := range map[string]struct {
		at      time.Time
		message string
		left    time.Duration
	}{
		"over since":              {now.Add(-10 * time.Hour), limit(now.Add(-7 * time.Hour)), 0},
		"a span, over since":      {now.Add(-10 * time.Hour), "rate limited: retry in 3 hours", 0},
		"still ahead":             {now.Add(-2 * time.Hour), limit(now.Add(3 * time.Hour)), 3 * time.Hour},
		"a span, still ahead":     {now.Add(-2 * time.Hour), "rate limited: retry in 5 hours", 3 * time.Hour},
		"the clock was set back":  {now.Add(2 * time.Hour), limit(now.Add(3 * time.Hour)), 3 * time.Hour},
		"from an earlier release": {time.Time{}, limit(now.Add(3 * time.Hour)), 3 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			box, err := inbox.Open(filepath.Join(t.TempDir(), "inbox.jsonl"), inbox.Options{})
			require.NoError(t, err)
			var held *inbox.Backoff
			in(t, box, func(tx *inbox.Tx) (err error) {
				require.NoError(t, recovery.HoldDelivery(tx, &inbox.Failure{Error: "rate_limit", Message: c.message, At: c.at}, true))
				held, err = tx.Holds().Backoff()
				return err
			})
			require.NotNil(t, held)
			assert.True(t, held.Named)
			assert.WithinDuration(t, now.Add(c.left), held.Until, 2*time.Minute) // a time of day has no seconds, and the end some jitter
		})
	}
}
