package inbox_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/inbox"
	"heartbeat/internal/disk"
	"heartbeat/internal/testing/crash"
)

// A power loss may take a line that its producer did not sync. Moving the cursor past a line makes
// the line durable first. Otherwise the cursor would stand beyond the end, and answered entries
// would be delivered again.
func TestPowerLossBehindWhatIsPassed(t *testing.T) {
	leave := func(t testing.TB, tx *inbox.Tx) {
		_, err := tx.Next(inbox.Mark{})
		require.ErrorIs(t, err, inbox.ErrEmpty)
	}
	settle := func(how func(*inbox.Tx) error) func(testing.TB, *inbox.Tx) {
		return func(t testing.TB, tx *inbox.Tx) {
			e, err := tx.Next(inbox.Mark{})
			require.NoError(t, err)
			_, err = tx.Deliver(e, inbox.Recipient{})
			require.NoError(t, err)
			require.NoError(t, how(tx))
		}
	}
	for name, c := range map[string]struct {
		line string
		pass func(testing.TB, *inbox.Tx)
	}{
		"expired":     {`{"prompt":"x","expires_at":"2001-01-01T00:00:00Z"}`, leave},
		"empty":       {`""`, leave},
		"dead letter": {"x", settle(func(tx *inbox.Tx) error { return tx.DeadLetter(inbox.ReasonOrphaned) })},
		"dropped":     {"x", settle((*inbox.Tx).Drop)},
		"answered":    {"x", settle(func(tx *inbox.Tx) error { return tx.Acknowledge("done") })},
		"set by hand": {"x", func(t testing.TB, tx *inbox.Tx) {}},
	} {
		t.Run(name, func(t *testing.T) {
			box := newBox(t, "one\n")
			settleNext(t, box, func(tx *inbox.Tx) error { return tx.Acknowledge("done") })
			rec := crash.Record(t, box.Dir(), func() {
				f, _, err := disk.OpenAppend(box.Path())
				require.NoError(t, err)
				_, err = f.Append([]byte("\n" + c.line + "\n"))
				require.NoError(t, err)
				require.NoError(t, f.Close())
				if name == "set by hand" { // to the end, by a launcher that starts afresh
					offset, _, err := disk.OpenWrite(beside(box, ".inbox-offset"))
					require.NoError(t, err)
					require.NoError(t, offset.WriteAt([]byte("7"), 0))
					require.NoError(t, offset.Close())
				}
				in(t, box, func(tx *inbox.Tx) { c.pass(t, tx) })
			})
			crash.EveryPowerLoss(t, rec, 1, 0, func(t *testing.T, crash crash.Crash) {
				reboot(t, "after the power loss")
				box := open(t, filepath.Join(crash.Dir, "inbox.jsonl"))
				warnings := in(t, box, func(*inbox.Tx) {})
				assert.NotContains(t, drain(t, box), "one", "it was answered: %q", warnings)
				for _, w := range warnings {
					assert.NotContains(t, w, "replaced")
				}
			})
		})
	}
}
