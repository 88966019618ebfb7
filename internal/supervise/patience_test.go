package supervise

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/inbox"
	"heartbeat/internal/money/price"
	"heartbeat/internal/supervise/client"
	"heartbeat/internal/supervise/terminal"
	recovery "heartbeat/recover"
)

// What holds delivery is waited for as the flags say, and otherwise ends the work.
func TestPatience(t *testing.T) {
	in := func(d time.Duration) time.Time { return time.Now().Add(d).Round(0) }
	limit := func(tx *inbox.Tx) error {
		return errors.Join(deliver(tx), tx.In("s").Fail("rate_limit", "try again in 3 hours"))
	}
	pause := func(until *time.Time) func(*inbox.Tx) error {
		return func(tx *inbox.Tx) error { _, err := tx.Holds().Pause("a deploy", until); return err }
	}
	unpriced := func(tx *inbox.Tx) error {
		return recovery.PauseForDay(tx, recovery.JudgeDay(price.Plan{Day: price.Limits{Nanos: 1}}, price.Amount{Unpriced: 1}))
	}
	soon, far := in(5*time.Minute), in(3*time.Hour)
	for name, c := range map[string]struct {
		change   func(*inbox.Tx) error
		patience time.Duration
		until    time.Time
		reason   Reason // "" for none
		detail   string
	}{
		"no price, from cron":                  {unpriced, 0, time.Time{}, Refused, "say the price"},
		"no price, at a terminal":              {unpriced, -1, time.Time{}, "", ""},
		"a limit, from cron":                   {limit, 0, time.Time{}, BackingOff, "rate_limit: try again in 3 hours"},
		"a limit, at a terminal":               {limit, -1, time.Time{}, "", ""},
		"a limit, patience":                    {limit, 4 * time.Hour, time.Time{}, "", ""},
		"a limit, too little patience":         {limit, time.Hour, time.Time{}, BackingOff, "(--patience 1h): rate_limit"},
		"a limit, until later":                 {limit, -1, in(5 * time.Hour), "", ""},
		"a limit, until earlier":               {limit, -1, in(time.Hour), BackingOff, "(--until "},
		"a limit, patience and until":          {limit, 4 * time.Hour, in(time.Hour), BackingOff, "(--until "},
		"a pause, from cron":                   {pause(&soon), 0, time.Time{}, Paused, "a deploy"},
		"a pause, at a terminal":               {pause(&far), -1, time.Time{}, "", ""},
		"a pause, patience":                    {pause(&far), 4 * time.Hour, time.Time{}, "", ""},
		"a pause, until earlier":               {pause(&far), -1, in(time.Hour), Paused, "a deploy"},
		"a pause without an end":               {pause(nil), -1, time.Time{}, Paused, "a deploy"},
		"nothing holds, and the time is over":  {deliverNothing, -1, in(-time.Minute), Left, "the time was over (--until "},
		"nothing holds, and the time is not":   {deliverNothing, -1, in(time.Minute), "", ""},
		"a pause, and the time is over before": {pause(&soon), -1, in(-time.Minute), Paused, "a deploy"},
	} {
		t.Run(name, func(t *testing.T) {
			r, box := newRun(t, Drain)
			r.Patience, r.Until, r.MaxRestarts = c.patience, c.until, 1
			change(t, box, c.change)
			st, err := r.settle(t.Context())
			require.NoError(t, err)
			e := r.endReason(st)
			if c.reason == "" {
				assert.Nil(t, e)
				assert.Equal(t, st.Hold.Any(), r.rest(st) > 0)
				return
			}
			require.NotNil(t, e)
			assert.Equal(t, c.reason, e.reason)
			assert.Contains(t, e.detail, c.detail)
		})
	}
}

func deliverNothing(tx *inbox.Tx) error { _, err := tx.Next(inbox.Mark{}); return err }

// Nothing is left of an inbox's work at the end of the time: that is no reason to complain.
func TestTimeIsOverAndDrained(t *testing.T) {
	r, _ := newRun(t, Drain)
	r.Until = time.Now().Add(-time.Hour)
	e := r.endReason(state{})
	require.NotNil(t, e)
	assert.Equal(t, Drained, e.reason)
}

// Patience is counted from the last answer.
func TestPatienceBeginsAnew(t *testing.T) {
	r, _ := newRun(t, Drain)
	r.Patience = time.Hour
	end := time.Now().Add(30 * time.Minute)
	assert.True(t, r.canAwait(end))
	r.patient.since = time.Now().Add(-45 * time.Minute)
	assert.False(t, r.canAwait(end))
	r.pace.answered++
	assert.True(t, r.canAwait(end))
}

// Sessions that meet an outage do not use up --max-restarts while its end is waited for.
func TestOutageIsNoRestart(t *testing.T) {
	for _, c := range []struct {
		patience  time.Duration
		failed    bool
		fruitless int
	}{{-1, true, 0}, {time.Hour, true, 0}, {0, true, 3}, {-1, false, 3}} {
		r, _ := newRun(t, Drain)
		r.Patience = c.patience
		for range 3 {
			s := newSession(client.Of("", []string{"claude"}), terminal.DefaultSize)
			s.failed.Store(c.failed)
			r.pace.sessionEnded(0, true, false)
			r.excuse(s)
		}
		assert.Equal(t, c.fruitless, r.pace.fruitless, "%+v", c)
	}
}

// A person is told of each long wait once, and of the limits once.
func TestTellWait(t *testing.T) {
	r, _ := newRun(t, Drain)
	var said, noted []string
	r.Line = func(_ time.Time, text string) { said = append(said, text) }
	r.Attended, r.Patience = true, -1
	r.Terminal.Note = func(_ string, args ...any) { noted = append(noted, args[0].(string)) }
	at := time.Now()
	st := state{waits: true}
	st.Backoff = &inbox.Backoff{At: at, Until: at.Add(time.Hour), Named: true, Failure: &inbox.Failure{Error: "rate_limit", Message: "wait"}}
	for range 3 {
		st.Backoff.Until = st.Backoff.Until.Add(time.Second) // as it is reckoned at each look
		r.announceWait(st, r.rest(st))
		r.announceLimits()
	}
	require.Len(t, said, 2)
	assert.Regexp(t, `^it waits until \d{4}-\d\d-\d\d \d\d:\d\d:\d\d, then the limit is over: rate_limit: wait \(Ctrl-C ends it\)$`, said[1])
	assert.Equal(t, "limits: none; an API limit or an outage is waited out", said[0])
	assert.Equal(t, said, noted)
	st.Backoff.At = at.Add(time.Second)
	r.announceWait(st, r.rest(st))
	assert.Len(t, said, 3)
	r.announceWait(state{waits: true}, time.Second)
	assert.Len(t, said, 3, "not worth a line")
}

func TestLimits(t *testing.T) {
	at := time.Date(2026, 11, 26, 7, 0, 0, 0, time.Local)
	for want, o := range map[string]Options{
		"limits: none": {Mode: Persist},
		"limits: none; an API limit is waited out for up to 10m, an outage for 6 sessions":        {Mode: Drain, Endurance: Endurance{MaxRestarts: 5}},
		"limits: --until 2026-11-26 07:00:00; an API limit or an outage is waited out until then": {Mode: Drain, Endurance: Endurance{Until: at, Patience: -1}},
		"limits: --timeout 2h; an API limit or an outage is waited out, for up to 10h":            {Mode: Drain, Endurance: Endurance{Patience: 10 * time.Hour}, Terminal: terminal.Options{Timeout: 2 * time.Hour}},
	} {
		assert.Equal(t, want, (&run{Options: o}).limits())
	}
	r := &run{Options: Options{Mode: Persist}}
	r.Settings.Limits = price.Plan{Entry: price.Limits{Nanos: 2.5e9, Time: 20 * time.Minute}, Day: price.Limits{Tokens: 4000}}
	assert.Equal(t, "limits: --max-cost-per-entry 2.5, --max-tokens-per-day 4000, --max-time-per-entry 20m0s", r.limits())
}
