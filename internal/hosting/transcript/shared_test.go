package transcript

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestOneDatabaseForAll has two sessions store their messages in one database while
// the guild writes rows of its own and somebody else reads.
func TestOneDatabaseForAll(t *testing.T) {
	const messages = 400
	first := place(t)
	second := first
	second.SessionID, second.Spool = "ses-2", first.Spool+"-2"
	guild := open(t, first)
	run(t, guild, "PRAGMA journal_mode = WAL", createTranscripts,
		"CREATE INDEX by_session ON books_animator_transcripts (json_extract(content, '$.sessionId'))")
	watcher := open(t, first)

	stop, failed := make(chan struct{}), make(chan error, 2)
	go func() {
		failed <- until(stop, func(i int) error {
			_, err := guild.Exec(`INSERT INTO books_animator_transcripts (id, content) VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET content = excluded.content`,
				fmt.Sprintf("ses-%d", i%4), fmt.Sprintf(`{"id":"x","messages":[%d]}`, i))
			return err
		})
	}()
	go func() {
		last := int64(0)
		failed <- until(stop, func(int) error {
			var count, highest int64
			err := watcher.QueryRow(`SELECT count(*), coalesce(max(n), 0) FROM heartbeat_messages WHERE session_id = 'ses-1'`).Scan(&count, &highest)
			if err != nil && strings.Contains(err.Error(), "no such table") {
				return nil
			}
			if err == nil && (count != highest || count < last) {
				err = fmt.Errorf("%d messages up to number %d, after %d", count, highest, last)
			}
			last = count
			return err
		})
	}()
	a, b := Open(first), Open(second)
	for i := int64(1); i <= messages; i++ {
		require.Equal(t, i, a.Append(message(i)))
		require.Equal(t, i, b.Append(message(i)))
	}
	eventually(t, func() bool { return a.Health().Stored == messages && b.Health().Stored == messages })
	close(stop)
	for range 2 {
		assert.NoError(t, <-failed)
	}
	closeIt(t, a)
	closeIt(t, b)
	requireStored(t, first, messages)
	requireStored(t, second, messages)
}

func until(stop <-chan struct{}, do func(i int) error) error {
	for i := 0; ; i++ {
		select {
		case <-stop:
			return nil
		default:
			if err := do(i); err != nil {
				return err
			}
		}
	}
}
