package history_test

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/inbox"
	"heartbeat/internal/command/history"
	"heartbeat/internal/words"
)

// TestLogOfABackoff holds that what a failed turn leads to reads well, and that
// a delivery which does not count says so.
func TestLogOfABackoff(t *testing.T) {
	box := newBox(t)
	_, err := box.Append(t.Context(), inbox.Message{ID: "job", Text: "text"}, 0)
	require.NoError(t, err)
	settle(t, box, answer)
	in(t, box, func(tx *inbox.Tx) error { return tx.In("s").Ask("permission_prompt", "Claude needs you") })
	in(t, box, func(tx *inbox.Tx) error {
		if err := tx.GiveBack("rate_limit: later", false); err != nil {
			return err
		}
		_, err := tx.Holds().BackOff(time.Minute, 1, false, &inbox.Failure{Error: "rate_limit", Message: "later"})
		return err
	})
	settle(t, box, nil)
	settle(t, box, func(tx *inbox.Tx) error { return tx.GiveBack("unknown: odd", true) })
	settle(t, box, func(tx *inbox.Tx) error { return tx.GiveBack(inbox.NeverArrived, false) })
	var lines []string
	until := ""
	for _, e := range readLog(t, box, 0) {
		lines = append(lines, e.String()[len("2026-03-04 12:00:00  "):])
		if e.Until != nil {
			until = words.Stamp(*e.Until)
		}
	}
	assert.Equal(t, []string{
		"queued  job",
		"delivered  job  attempt 1, session s",
		"session asks  session s: permission_prompt: Claude needs you",
		"redelivered  job  attempt 1 not counted, session s: rate_limit: later",
		"backing off  until " + until + ": rate_limit: later",
		"delivered  job  attempt 1, session s",
		"redelivered  job  attempt 1, session s: unknown: odd",
		"delivered  job  attempt 2, session s",
		"redelivered  job  attempt 2 not counted, session s: it never arrived",
		"delivered  job  attempt 2, session s",
	}, lines)
}

// An end comes after its beginning, even if the clock was set back.
func TestAClockThatWentBack(t *testing.T) {
	box := newBox(t)
	for path, line := range map[string]string{
		box.ResultsPath(): `{"entry_id":"e","delivered_at":"2026-03-04T12:00:00Z","acknowledged_at":"2026-03-04T11:00:00Z"}`,
		box.EventsPath():  `{"at":"2026-03-04T11:30:00Z","event":"paused"}`,
	} {
		require.NoError(t, os.WriteFile(path, []byte(line+"\n"), 0o600))
	}
	var all []string
	for _, e := range readLog(t, box, 0) {
		all = append(all, e.Event)
	}
	assert.Equal(t, []string{"paused", history.Delivered, history.Answered}, all)
}
