package cli

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestMoment(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	require.NoError(t, err)
	york, err := time.LoadLocation("America/New_York")
	require.NoError(t, err)
	again := time.Date(2026, 11, 1, 6, 15, 0, 0, time.UTC).In(york) // the clocks show 01:15 for the second time
	night := time.Date(2026, 11, 25, 23, 30, 0, 0, berlin)
	for _, c := range []struct {
		text, want string
		now        time.Time
		ago        bool
	}{
		{"07:00", "2026-11-26T07:00:00+01:00", night, false},
		{"7:05", "2026-11-26T07:05:00+01:00", night, false},
		{"23:59:30", "2026-11-25T23:59:30+01:00", night, false},
		{"23:30", "2026-11-26T23:30:00+01:00", night, false}, // the present minute has passed
		{"23:30", "2026-11-25T23:30:00+01:00", night, true},
		{"23:31", "2026-11-24T23:31:00+01:00", night, true},
		{"07:00", "2026-12-01T07:00:00+01:00", time.Date(2026, 11, 30, 8, 0, 0, 0, berlin), false},
		{"07:00", "2026-10-25T07:00:00+01:00", time.Date(2026, 10, 24, 23, 0, 0, 0, berlin), false}, // the clocks are put back that night
		{"02:30", "2026-03-08T03:30:00-04:00", time.Date(2026, 3, 8, 0, 0, 0, 0, york), false},      // no clock shows it that night
		{"2026-03-08T02:30", "2026-03-08T03:30:00-04:00", night.In(york), true},
		{"01:30", "2026-11-01T01:30:00-04:00", again.Add(-time.Hour), false},
		{"01:30", "2026-11-01T01:30:00-05:00", again, false},
		{"01:30", "2026-11-01T01:30:00-04:00", again, true},
		{"01:10", "2026-11-01T01:10:00-05:00", again, true},
		{"2026-11-01T01:30", "2026-11-01T01:30:00-05:00", again, false},
		{"2026-11-25T12:00", "2026-11-25T12:00:00+01:00", night, false}, // is over
		{"2026-11-26T12:00", "2026-11-26T12:00:00+01:00", night, true},
		{"8h", "2026-11-26T07:30:00+01:00", night, false},
		{"90", "2026-11-25T23:28:30+01:00", night, true},
		{"2026-11-26T06:00", "2026-11-26T06:00:00+01:00", night, false},
		{"2026-11-26T06:00:00Z", "2026-11-26T06:00:00Z", night, false},
		{"2026-11-27", "2026-11-27T00:00:00+01:00", night, false},
	} {
		m := Moment{Ago: c.ago}
		require.NoError(t, m.set(c.text, c.now), c.text)
		assert.Equal(t, c.want, m.String(), "%s, ago %v", c.text, c.ago)
	}
	for _, text := range []string{"", "24:00", "7am", "-1h", "07:60", "tomorrow", "25:61:00"} {
		var m Moment
		require.Error(t, m.set(text, night), text)
		assert.True(t, m.IsZero(), text)
	}
}
