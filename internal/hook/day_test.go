package hook_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/inbox"
	"heartbeat/internal/testing/days"
	"heartbeat/internal/testing/long"
)

// TestDayOfEntries lets a session work through many entries while its hook is killed at random moments.
func TestDayOfEntries(t *testing.T) {
	d, _ := workedDay(t, long.Rounds(100, 1000), long.Rounds(10, 50))
	if long.Wanted() { // a short day leaves too little to give back
		compactDay(t, d.Inbox())
	}
}

// BenchmarkDay is such a day with 50,000 entries.
func BenchmarkDay(b *testing.B) {
	for b.Loop() {
		d, report := workedDay(b, long.Rounds(1000, 50_000), 200)
		before, err := days.Space(filepath.Dir(d.Inbox()))
		require.NoError(b, err)
		out, err := exec.Command("heartbeat", "compact", "--inbox", d.Inbox(), "--keep", "0").CombinedOutput()
		require.NoError(b, err, string(out))
		after, err := days.Space(filepath.Dir(d.Inbox()))
		require.NoError(b, err)
		assert.Less(b, after, int64(10_000_000))
		b.ReportMetric(float64(report.Ticks)/report.Took.Seconds(), "ticks/s")
		b.ReportMetric(float64(report.Kills), "kills")
		b.ReportMetric(float64(report.Redeliveries), "redeliveries")
		b.ReportMetric(float64(before)/1e6, "MB")
		b.ReportMetric(float64(after)/1e6, "MB-compacted")
	}
}

func workedDay(t testing.TB, entries, killEvery int) (*days.Day, days.Report) {
	command, err := exec.LookPath("heartbeat-stop") // this test binary: see TestMain
	require.NoError(t, err)
	const seed = 1
	d := &days.Day{Command: command, Dir: t.TempDir(), Entries: entries, KillEvery: killEvery, Random: rand.New(rand.NewPCG(seed, 0))}
	report, err := d.Run(context.Background())
	t.Logf("seed %d: %+v", seed, report)
	require.NoError(t, err)
	assert.GreaterOrEqual(t, report.Kills, entries/killEvery)
	assert.LessOrEqual(t, report.Redeliveries, report.Kills)
	return d, report
}

// compactDay wants the space of answered entries given back.
func compactDay(t *testing.T, path string) {
	before, err := days.Space(path)
	require.NoError(t, err)
	box, err := inbox.Open(path, inbox.Options{})
	require.NoError(t, err)
	_, err = box.Compact(context.Background())
	if errors.Is(err, inbox.ErrNoHoles) {
		t.Skip("this file system has no holes")
	}
	require.NoError(t, err)
	after, err := days.Space(path)
	require.NoError(t, err)
	assert.Less(t, after, before/10)
}
