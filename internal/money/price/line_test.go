package price_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/money/price"
)

func FuzzParseLine(f *testing.F) {
	for _, line := range []string{
		`{"at":"2026-03-04T12:00:00Z","entry_id":"e","first_seq":2,"cost_usd":0.5,"tokens":{"input":1,"output":2,"cache_read":3,"cache_write":4},"charged":"5 1 2 3 4 1","transcript_end":7}`,
		`{"at":"2026-03-04T12:00:00Z","outside":true,"cost_usd":-1}`, `{}`, `{"at":"x"}`, `{"at":"2026-03-04T12:00:00Z","guess":true,"models":"m\t- 1 2 3 4 5\n"}`,
	} {
		f.Add([]byte(line))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		l, err := price.ParseLine(line)
		if err != nil {
			return
		}
		assert.GreaterOrEqual(t, l.Nanos, int64(0))
		again, err := price.ParseLine(l.JSON())
		require.NoError(t, err, "%s", l.JSON())
		assert.Equal(t, l, again)
	})
}
