package command

import (
	"fmt"
	"strings"
	"testing"
	"time"

	recovery "heartbeat/recover"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/inbox"
	"heartbeat/internal/command/doctor"
	"heartbeat/internal/money/account"
	"heartbeat/internal/money/price"
	"heartbeat/orchestrate"
)

// Limits that cannot be held are named, by status and by doctor, as long as the session runs.
func TestStatusOfWhatIsNotCounted(t *testing.T) {
	s := newSpender(t, inbox.Message{ID: "a", Text: "one"})
	const cause = "open DIR/t.jsonl: it is not a regular file: remove it"
	s.in(func(tx *inbox.Tx) error { tx.In("s").NoteUncounted(cause); return nil })
	says1 := `limits are set, and since .* not all that session s spends is counted, so limits of dollars and tokens may not hold: ` + cause
	out, _ := says(t, s.box, "status")
	assert.Regexp(t, `(?m)^trouble +`+says1, out)
	assert.Equal(t, 1, strings.Count(out, "not all that session s spends"), "once")
	out, _ = says(t, s.box, "status", "--json")
	assert.Regexp(t, `"troubles":\[.*"kind":"not-counted".*not all that session s spends is counted`, out)
	out, _ = says(t, s.box, "log")
	assert.Contains(t, out, "not counted")
	examined := func() string {
		return fmt.Sprint(doctor.Amiss(doctor.Run(doctor.Input{Inbox: s.box.Path(), Driven: orchestrate.Driven})))
	}
	assert.Regexp(t, "troubles warn "+says1, examined())
	s.in(func(tx *inbox.Tx) error { return tx.In("s").End() })
	out, _ = says(t, s.box, "status")
	assert.NotContains(t, out, "not all that session s spends is counted")
	assert.NotContains(t, examined(), "not all that session s spends is counted")
}

// Resume says plainly where a day's limit would pause delivery again at once.
func TestResumeOverADaysLimit(t *testing.T) {
	s := newSpender(t, inbox.Message{ID: "a", Text: "one"})
	s.now = time.Now()
	s.request(310)
	s.stop(nil, false)
	s.end()
	pause := func(limit int64) {
		s.in(func(tx *inbox.Tx) error {
			l := price.Limits{Nanos: limit}
			account.Of(tx).NoteLimit(l.JSON())
			v := recovery.JudgeDay(price.Plan{Day: price.Limits{Nanos: 1}}, account.Of(tx).Today())
			require.NotNil(t, v)
			return recovery.PauseForDay(tx, v)
		})
	}
	pause(2_000_000_000)
	out, _ := says(t, s.box, "resume")
	assert.Regexp(t, `^the pause is over: it was paused since .*, but at the next Stop delivery pauses until midnight: today cost 3\.10 of 2\.00 USD \(the limit of a day\): give the hook a higher one \(--max-cost-per-day or --max-tokens-per-day, where it is wired\), or wait for midnight\n$`, out)
	pause(2_000_000_000)
	out, _ = says(t, s.box, "resume", "--json")
	assert.Contains(t, out, `"over_limit":"today cost 3.10 of 2.00 USD"`)
	pause(50_000_000_000) // raised meanwhile, and told by a Stop
	out, _ = says(t, s.box, "resume")
	assert.Regexp(t, `^delivery goes on: it was paused since .*\n$`, out)
	assert.NotContains(t, out, "but at the next Stop")
}

// What went to models whose price nobody knows is named as long as it is of today: a person's
// resume accepts it.
func TestStatusOfWhatHasNoPrice(t *testing.T) {
	s := newSpender(t, inbox.Message{ID: "a", Text: "one"})
	s.now = time.Now()
	s.request(310)
	s.request(0)
	s.stop(nil, false)
	s.end()
	s.in(func(tx *inbox.Tx) error {
		account.Of(tx).NoteLimit(price.Limits{Nanos: 50_000_000_000}.JSON())
		v := recovery.JudgeDay(price.Plan{Day: price.Limits{Nanos: 50_000_000_000}}, account.Of(tx).Today())
		require.NotNil(t, v)
		assert.Contains(t, v.Figures, "today 1 request went to a model whose price nobody knows")
		return recovery.PauseForDay(tx, v)
	})
	out, _ := says(t, s.box, "status")
	assert.Contains(t, out, "3.10+ of 50.00 USD")
	assert.Contains(t, out, "for 1 request nobody knows the price of the model")
	out, _ = says(t, s.box, "resume")
	assert.Regexp(t, `^delivery goes on: it was paused since .*\n$`, out)
	out, _ = says(t, s.box, "status")
	assert.NotContains(t, out, "nobody knows")
}

// What agents sent is counted, in words that fit one entry too.
func TestStatusOfWhatAgentsSent(t *testing.T) {
	s := newSpender(t)
	for _, want := range []string{"1 entry was", "2 entries were"} {
		_, err := s.box.AppendSelf(t.Context(), inbox.Message{Text: "one"}, 0, 0)
		require.NoError(t, err)
		out, _ := says(t, s.box, "status")
		assert.Contains(t, out, want+" sent by agents at work, the last ")
	}
}

// What only became older is nothing new to show.
func TestSameButForAges(t *testing.T) {
	const text, json = "in flight  a since 14:00 (%s ago), attempt 1\nwhy  (soon) since (%s ago)", `{"in_flight":{"age_seconds":%s,"attempt":1},"why":"x (%s ago)"}`
	for _, form := range []string{text, json} {
		for name, c := range map[string]struct {
			a, b string
			want bool
		}{
			"older":      {fmt.Sprintf(form, "5s", "1h"), fmt.Sprintf(form, "6s", "1h 1m"), true},
			"nothing":    {fmt.Sprintf(form, "5s", "1m"), fmt.Sprintf(form, "5s", "1m"), true},
			"more":       {fmt.Sprintf(form, "5s", "1m"), fmt.Sprintf(form, "5s", "1m") + "!", false},
			"other text": {fmt.Sprintf(form, "5s", "1m"), "x" + fmt.Sprintf(form, "5s", "1m"), false},
		} {
			assert.Equal(t, c.want, sameButForAges(c.a, c.b), "%s %s", name, form)
		}
	}
	assert.False(t, sameButForAges("it was (5 sec ago)", "it was (6 sec ago)"), "not what an age looks like")
}

// An entry that was delivered before the clock was set back is not younger than nothing.
func TestStatusOfTheFuture(t *testing.T) {
	s := newSpender(t, inbox.Message{ID: "a", Text: "one"})
	s.now = time.Now().Add(time.Hour)
	s.stop(nil, true)
	out, _ := says(t, s.box, "status", "--json")
	assert.Regexp(t, `"age_seconds":0,`, out)
}
