package account

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A day ends with its date, even where the clock skips midnight or a whole day.
func TestMidnight(t *testing.T) {
	for place, of := range map[string][2]string{
		"UTC":              {"2026-11-22 16:00", "2026-11-23T00:00:00Z"},
		"Europe/Berlin":    {"2026-03-29 01:30", "2026-03-30T00:00:00+02:00"},
		"America/Santiago": {"2026-09-05 23:30", "2026-09-06T01:00:00-03:00"},
		"Asia/Beirut":      {"2026-03-28 23:30", "2026-03-29T01:00:00+03:00"},
		"America/Havana":   {"2026-10-31 23:30", "2026-11-01T00:00:00-04:00"},
		"Pacific/Apia":     {"2011-12-29 20:00", "2011-12-31T00:00:00+14:00"},
	} {
		zone, err := time.LoadLocation(place)
		if err != nil {
			t.Skip("this machine knows no time zones")
		}
		now, err := time.ParseInLocation("2006-01-02 15:04", of[0], zone)
		require.NoError(t, err)
		assert.Equal(t, of[1], midnight(now, 1).Format(time.RFC3339), place)
	}
}
