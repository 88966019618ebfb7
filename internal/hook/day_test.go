package hook_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/inbox"
	"heartbeat/internal/testing/days"
	"heartbeat/internal/testing/long"
)

// TestDayOfEntries has a session work through many entries while its hook is killed
// again and again, at whatever moment of its run.
func TestDayOfEntries(t *testing.T) {
	command, err := exec.LookPath("heartbeat-stop") // this test binary: see TestMain
	require.NoError(t, err)
	const seed = 1
	d := days.Day{Command: command, Dir: t.TempDir(), Entries: long.Rounds(200, 1000), KillEvery: long.Rounds(20, 50), Random: rand.New(rand.NewPCG(seed, 0))}
	report, err := d.Run(context.Background())
	t.Logf("seed %d: %+v", seed, report)
	require.NoError(t, err)
	assert.GreaterOrEqual(t, report.Kills, d.Entries/d.KillEvery)
	assert.LessOrEqual(t, report.Redeliveries, report.Kills)
	if long.Wanted() { // a short day leaves too little to give back
		compactDay(t, d.Inbox())
	}
}

// compactDay wants the space of what was answered given back.
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
