package session_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/hosting/folder"
)

// Entries that take too long are set aside one by one, each with its client, until six in
// a row have come to that.
func TestStoppedAgainAndAgain(t *testing.T) {
	t.Parallel()
	r := newRig(t, "hang")
	r.Inbox = r.path("inbox.jsonl")
	require.NoError(t, os.WriteFile(r.Inbox, []byte(strings.Repeat("hang\n", 7)), 0o600))
	r.Limits.Entry.Time = time.Millisecond
	_, o := r.run()
	assert.Equal(t, folder.Failed, o.State)
	assert.Regexp(t, `^claude was ended at a limit of its entry, after .*s; 0 of 8 prompts answered, 2 waiting, 6 set aside as dead letters$`, o.Error)
	report := r.report()
	assert.Equal(t, string(folder.Failed), report["status"])
	assert.Equal(t, "limit", report["ended"])
	assert.Equal(t, []any{"6 clients in a row reached a limit without an answer: no other one is started"}, report["warnings"])
	r.isClean()
}
