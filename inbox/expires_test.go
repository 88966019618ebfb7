package inbox_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/inbox"
)

func TestExpires(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		at      string // as JSON
		expired bool
	}{
		"past":                 {`"2026-03-04T11:59:59Z"`, true},
		"exactly now":          {`"2026-03-04T12:00:00.123456789Z"`, false},
		"a nanosecond ago":     {`"2026-03-04T12:00:00.123456788Z"`, true},
		"future":               {`"2026-03-04T12:00:01Z"`, false},
		"past, another zone":   {`"2026-03-04T13:59:59+02:00"`, true},
		"future, another zone": {`"2026-03-04T10:30:00-02:00"`, false},
		"year 1":               {`"0001-01-02T00:00:00Z"`, true},
		"year 9999":            {`"9999-12-31T23:59:59Z"`, false},
		"no time":              {`"soon"`, false},
		"no zone":              {`"2020-01-01T00:00:00"`, false},
		"a date":               {`"2020-01-01"`, false},
		"empty":                {`""`, false},
		"a number":             {`1577836800`, false},
		"null":                 {`null`, false},
		"an object":            {`{"at":"2020-01-01T00:00:00Z"}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			line := fmt.Sprintf(`{"prompt":"x","id":"job","expires_at":%s}`, c.at)
			box := newBox(t, "one\n"+line+"\nlast\n")
			want := []string{"one", "x", "last"}
			if c.expired {
				want = []string{"one", "last"}
			}
			assert.Equal(t, want, drain(t, box))
			if !c.expired {
				assert.Empty(t, deadLetters(t, box))
				return
			}
			assert.Equal(t, []inbox.DeadLetter{{
				EntryID: sha256Hex(line), ID: "job", Metadata: metadata{"expires_at": raw(c.at)}, RawLine: inbox.RawLine{Text: line},
				StartOffset: 4, EndOffset: 4 + int64(len(line)) + 1, Reason: inbox.ReasonExpired, DeadLetteredAt: noon,
			}}, deadLetters(t, box))
		})
	}
}

// Only envelopes have a time of expiry.
func TestOnlyEnvelopesExpire(t *testing.T) {
	box := newBox(t, "{\"expires_at\":\"2020-01-01T00:00:00Z\"}\n\"expires_at 2020-01-01T00:00:00Z\"\n")
	assert.Len(t, drain(t, box), 2)
}

// Time passes while an entry waits, is in flight and waits again.
func TestExpiresWhile(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		do       func(t testing.TB, now *clock, expire func())
		answered int
		attempts []int // of the dead letters
	}{
		"waiting": {func(_ testing.TB, _ *clock, expire func()) { expire() }, 0, []int{0}},
		"in flight": {func(t testing.TB, now *clock, expire func()) {
			deliver(t, now.box)
			expire()
			acknowledge(t, now.box, "done")
		}, 1, nil},
		"given back": {func(t testing.TB, now *clock, expire func()) {
			for range 2 {
				deliver(t, now.box)
				giveBack(t, now.box)
			}
			expire()
		}, 0, []int{2}},
		"in flight, then given back": {func(t testing.TB, now *clock, expire func()) {
			deliver(t, now.box)
			expire()
			giveBack(t, now.box)
		}, 0, []int{1}},
		"given back, detached": {func(t testing.TB, now *clock, expire func()) {
			deliver(t, now.box)
			giveBack(t, now.box)
			rewrite(t, now.box.Path(), "")
			in(t, now.box, func(*inbox.Tx) {})
			expire()
		}, 0, []int{1}},
		"scheduled": {func(t testing.TB, now *clock, expire func()) {
			now.send(t, inbox.Message{Text: "later", NotBefore: noon.Add(time.Minute), Expires: noon.Add(2 * time.Minute)})
			settle(t, now.box, answer(""))
			expire()
		}, 1, []int{0}},
	} {
		t.Run(name, func(t *testing.T) {
			now := clockOf(t, newBox(t, ""))
			now.send(t, inbox.Message{ID: "job", Text: "x", Expires: noon.Add(time.Hour)})
			c.do(t, now, func() { now.set(noon.Add(time.Hour + 1)) })
			echo(t, now.box.Path(), "next\n")
			var aside []inbox.SetAside
			in(t, now.box, func(tx *inbox.Tx) {
				require.Nil(t, tx.InFlight())
				e, err := tx.Next(inbox.Mark{})
				require.NoError(t, err)
				assert.Equal(t, "next", e.Text)
				aside = tx.SetAside()
			})
			if name != "scheduled" { // a scheduled entry stands behind the next
				assert.Len(t, aside, len(c.attempts))
			}
			assert.Equal(t, []string{"next"}, drain(t, now.box))
			assert.Len(t, results(t, now.box), c.answered+1)
			var attempts []int
			for _, d := range deadLetters(t, now.box) {
				assert.Equal(t, inbox.ReasonExpired, d.Reason)
				attempts = append(attempts, d.Attempts)
			}
			assert.Equal(t, c.attempts, attempts)
		})
	}
}
