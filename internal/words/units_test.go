package words_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"heartbeat/internal/words"
)

func TestSize(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0 B", 1: "1 B", 999: "999 B", 1000: "1.0 kB", 1549: "1.5 kB", 999_949: "999.9 kB", 999_950: "1.0 MB", 12_345_678: "12.3 MB",
		5_000_000_000: "5.0 GB", math.MaxInt64: "9.2 EB", -5: "-5 B", -1500: "-1.5 kB", math.MinInt64: "-9.2 EB",
	} {
		assert.Equal(t, want, words.Size(n))
	}
}

func TestTook(t *testing.T) {
	const day = 24 * time.Hour
	for d, want := range map[time.Duration]string{
		-time.Second: "0s", 0: "0s", 1234 * time.Microsecond: "1ms", 1234 * time.Millisecond: "1.2s", 12345 * time.Millisecond: "12s",
		59400 * time.Millisecond: "59s", 59500 * time.Millisecond: "1m", 65 * time.Second: "1m 5s", 5 * time.Minute: "5m",
		time.Hour - time.Second: "59m 59s", time.Hour - time.Millisecond: "1h", time.Hour + 2*time.Second: "1h", 3*time.Hour + 5*time.Minute: "3h 5m",
		day - time.Minute: "23h 59m", day - time.Second: "1d", day: "1d", 3*day + 4*time.Hour + 20*time.Minute: "3d 4h", 400 * day: "400d",
	} {
		assert.Equal(t, want, words.Took(d), d.String())
	}
}

func TestAgo(t *testing.T) {
	now := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	for d, want := range map[time.Duration]string{
		-time.Hour: "just now", 0: "just now", 999 * time.Millisecond: "just now", 45 * time.Second: "45s ago", 119 * time.Second: "1m ago",
		59 * time.Minute: "59m ago", 25 * time.Hour: "1d ago", 24*time.Hour - 1: "23h ago", 400 * 24 * time.Hour: "400d ago",
	} {
		assert.Equal(t, want, words.Ago(now, now.Add(-d)), d.String())
	}
}

func TestMilliseconds(t *testing.T) {
	for n, want := range map[float64]time.Duration{0.5: 500 * time.Microsecond, 90_000: 90 * time.Second, 1<<53 - 1: 36500 * 24 * time.Hour, 1e300: 36500 * 24 * time.Hour} {
		assert.Equal(t, want, words.Milliseconds(n))
	}
	assert.Negative(t, words.Milliseconds(-1e300))
}
