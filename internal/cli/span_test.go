package cli_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/cli"
)

func TestSpan(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"300": 5 * time.Minute, "0.5": time.Second / 2, "0": 0, "1e2": 100 * time.Second, "5m": 5 * time.Minute, "1h30m": 90 * time.Minute,
		"30d": 720 * time.Hour, "0.5d": 12 * time.Hour, "1d12h": 36 * time.Hour, "106751d": 106751 * 24 * time.Hour,
	} {
		var s, again cli.Span
		require.NoError(t, s.Set(text), text)
		assert.Equal(t, want, time.Duration(s), text)
		require.NoError(t, again.Set(s.String()))
		assert.Equal(t, s, again, text)
	}
	for _, text := range []string{
		"", "d", "-1", "-1d", "-5m", "1d-2h", "day", "NaN", "NaNd", "+Inf", "Infd", "1e300", "1e300d",
		"106752d", "106751d23h59m", "1d1d", "12hd", "5 m",
	} {
		s := cli.Span(time.Second)
		assert.EqualError(t, s.Set(text), "it takes seconds or a duration, such as 300, 0.5, 5m or 30d", text)
		assert.Equal(t, cli.Span(time.Second), s, "%q left it alone", text)
	}
}
