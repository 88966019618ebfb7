package inbox_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/inbox"
)

// overloaded is an error that holds delivery.
var overloaded = &inbox.Failure{Error: "overloaded", Message: "API Error: 529 <é>", At: noon}

func backOff(t testing.TB, box *inbox.Inbox, length time.Duration, streak int) (b inbox.Backoff) {
	t.Helper()
	in(t, box, func(tx *inbox.Tx) {
		var err error
		b, err = tx.Holds().BackOff(length, streak, false, overloaded)
		require.NoError(t, err)
	})
	return b
}

// backoff returns the back-off that a transaction and a view find, and the streak.
func backoff(t testing.TB, box *inbox.Inbox) (b *inbox.Backoff, streak int) {
	t.Helper()
	tx, err := box.Begin(t.Context())
	require.NoError(t, err)
	b, err = tx.Holds().Backoff()
	require.NoError(t, err)
	streak, err = tx.Holds().Streak()
	require.NoError(t, err)
	require.NoError(t, tx.Close())
	seen, err := viewOf(t, box).Holds().Backoff()
	require.NoError(t, err)
	require.Equal(t, b == nil, seen == nil)
	if b != nil {
		// Both derive the end from the time that is left, and now is a little later.
		assert.WithinDuration(t, b.Until, seen.Until, time.Minute)
		seen.Until = b.Until
		assert.Equal(t, b, seen)
	}
	return b, streak
}

func TestBackoff(t *testing.T) {
	now := clockOf(t, newBox(t, oldContent))
	b, streak := backoff(t, now.box)
	assert.Nil(t, b)
	assert.Zero(t, streak)
	made := backOff(t, now.box, time.Hour, 3)
	assert.Equal(t, noon, made.At)
	assert.Equal(t, noon.Add(time.Hour), made.Until)

	until := noon.Add(time.Hour)
	assert.Equal(t, []inbox.Event{{At: noon, Event: inbox.EventBackingOff, Reason: overloaded.String(), Until: &until}}, events(t, now.box))
	for _, box := range []*inbox.Inbox{now.box, open(t, now.box.Path())} { // it holds for everybody
		b, streak = backoff(t, box)
		require.NotNil(t, b)
		assert.Equal(t, 3, streak)
		assert.WithinDuration(t, until, b.Until, time.Minute)
		assert.Equal(t, overloaded, b.Failure)
		assert.False(t, b.Named)
	}
}

// Within the boot in which a back-off began, setting the clock neither shortens nor prolongs it:
// Until is what that clock will show at the end.
func TestBackoffWhenTheClockIsSet(t *testing.T) {
	for _, jump := range []time.Duration{time.Minute, 2 * time.Hour, 10000 * time.Hour, -time.Minute, -2 * time.Hour, -10000 * time.Hour} {
		t.Run(jump.String(), func(t *testing.T) {
			now := clockOf(t, newBox(t, oldContent))
			backOff(t, now.box, time.Hour, 1)
			now.set(noon.Add(jump))
			b, streak := backoff(t, now.box)
			require.NotNil(t, b)
			assert.Equal(t, 1, streak)
			assert.WithinDuration(t, noon.Add(jump).Add(time.Hour), b.Until, time.Minute)
		})
	}
}

// An end that the error named is a time of the wall clock: it also comes while the clock since boot stands still, as
// that of a suspended virtual machine does. A clock that is set back does not put it off.
func TestNamedBackoffEndsByTheClockToo(t *testing.T) {
	for jump, left := range map[time.Duration]time.Duration{
		20 * time.Minute: 40 * time.Minute, time.Hour: 0, 9 * time.Hour: 0, -9 * time.Hour: time.Hour,
	} {
		t.Run(jump.String(), func(t *testing.T) {
			now := clockOf(t, newBox(t, oldContent))
			in(t, now.box, func(tx *inbox.Tx) {
				_, err := tx.Holds().BackOff(time.Hour, 1, true, overloaded)
				require.NoError(t, err)
			})
			now.set(noon.Add(jump))
			b, _ := backoff(t, now.box)
			if left == 0 {
				assert.Nil(t, b)
				return
			}
			require.NotNil(t, b)
			assert.WithinDuration(t, noon.Add(jump).Add(left), b.Until, time.Minute)
		})
	}
}

// In another boot only the wall clock is left. Setting it back does not make the back-off longer
// than planned.
func TestBackoffInAnotherBoot(t *testing.T) {
	for name, c := range map[string]struct{ jump, left time.Duration }{
		"at once":         {0, time.Hour},
		"later":           {20 * time.Minute, 40 * time.Minute},
		"just before":     {time.Hour - 1, 1},
		"at its end":      {time.Hour, 0},
		"long after":      {10000 * time.Hour, 0},
		"set back":        {-time.Minute, time.Hour},
		"set back by far": {-10000 * time.Hour, time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			reboot(t, "one")
			now := clockOf(t, newBox(t, oldContent))
			backOff(t, now.box, time.Hour, 2)
			reboot(t, "two")
			now.set(noon.Add(c.jump))
			b, streak := backoff(t, now.box)
			assert.Equal(t, 2, streak, "it outlives the back-off")
			if c.left == 0 {
				assert.Nil(t, b)
				return
			}
			require.NotNil(t, b)
			assert.Equal(t, noon.Add(c.jump).Add(c.left), b.Until)
		})
	}
}

func TestBackoffOfNoLength(t *testing.T) {
	for _, length := range []time.Duration{0, -time.Hour} {
		now := clockOf(t, newBox(t, oldContent))
		made := backOff(t, now.box, length, 1)
		assert.Equal(t, noon, made.Until)
		b, streak := backoff(t, now.box)
		assert.Nil(t, b)
		assert.Equal(t, 1, streak)
	}
}

// Only an answer and an operator's resume show that the service works again.
func TestBackoffIsForgotten(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		do      func(t testing.TB, tx *inbox.Tx) error
		forgets bool
	}{
		"answered":      {func(_ testing.TB, tx *inbox.Tx) error { return tx.Acknowledge("done") }, true},
		"resumed":       {func(_ testing.TB, tx *inbox.Tx) error { return tx.Holds().Resume() }, true},
		"given back":    {func(_ testing.TB, tx *inbox.Tx) error { return tx.GiveBack("overloaded", false) }, false},
		"dead-lettered": {func(_ testing.TB, tx *inbox.Tx) error { return tx.DeadLetter(inbox.ReasonExhausted) }, false},
		"dropped":       {func(_ testing.TB, tx *inbox.Tx) error { return tx.Drop() }, false},
		"failed":        {func(_ testing.TB, tx *inbox.Tx) error { return tx.In("s").Fail("overloaded", "") }, false},
		"new session":   {func(_ testing.TB, tx *inbox.Tx) error { return tx.In("t").Start(1, nil) }, false},
		"paused": {func(t testing.TB, tx *inbox.Tx) error {
			_, err := tx.Holds().Pause("", nil)
			return err
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			now := clockOf(t, newBox(t, oldContent))
			deliver(t, now.box)
			backOff(t, now.box, time.Hour, 4)
			in(t, now.box, func(tx *inbox.Tx) { require.NoError(t, c.do(t, tx)) })
			b, streak := backoff(t, now.box)
			assert.Equal(t, c.forgets, b == nil)
			assert.Equal(t, c.forgets, streak == 0)
		})
	}
}

// The latest back-off counts, even if it is shorter.
func TestBackoffAgain(t *testing.T) {
	now := clockOf(t, newBox(t, oldContent))
	backOff(t, now.box, 9*time.Hour, 1)
	backOff(t, now.box, time.Hour, 2)
	b, streak := backoff(t, now.box)
	assert.Equal(t, 2, streak)
	assert.WithinDuration(t, noon.Add(time.Hour), b.Until, time.Minute)
	in(t, now.box, func(tx *inbox.Tx) {
		_, err := tx.Holds().BackOff(2*time.Hour, 3, true, nil)
		require.NoError(t, err)
	})
	b, _ = backoff(t, now.box)
	assert.True(t, b.Named)
	assert.Nil(t, b.Failure)
}

// A back-off outlives all changes to the files.
func TestBackoffStays(t *testing.T) {
	reboot(t, "one")
	now := clockOf(t, newBox(t, oldContent))
	backOff(t, now.box, time.Hour, 7)
	for _, change := range []func(){
		func() { forget(t, now.box) },
		func() { rewrite(t, now.box.Path(), "new\n") },
		func() { write(t, beside(now.box, ".inbox-offset"), "0") },
		func() { reboot(t, "two") },
	} {
		change()
		b, streak := backoff(t, now.box)
		require.NotNil(t, b)
		assert.Equal(t, 7, streak)
		in(t, now.box, func(*inbox.Tx) {})
	}
}

// Thousands of failures in a row leave one back-off.
func TestManyBackoffs(t *testing.T) {
	t.Parallel()
	now := clockOf(t, newBox(t, oldContent))
	for i := range 300 {
		backOff(t, now.box, time.Hour, i+1)
	}
	_, streak := backoff(t, now.box)
	assert.Equal(t, 300, streak)
	assert.Less(t, fileSize(t, beside(now.box, journal)), int64(1<<20))
}
