package launch

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/launch/managed"
)

// A problem that stays until a person solves it is told, and again a day later, but not
// by each launcher that meets it.
func TestWorthMail(t *testing.T) {
	inbox, now := filepath.Join(t.TempDir(), "inbox.jsonl"), time.Now()
	report := func(exit int, reason managed.Reason, detail string, sessions int) *managed.Report {
		return &managed.Report{Inbox: inbox, Exit: exit, Reason: reason, Detail: detail, Sessions: sessions}
	}
	bill := report(exitAuthentication, managed.Refused, "unknown: API Error: 402", 0)
	assert.True(t, worthMail(bill, now))
	assert.False(t, worthMail(bill, now.Add(time.Hour)))
	assert.False(t, worthMail(report(exitWorkLeft, managed.Busy, "", 0), now.Add(time.Hour)))
	assert.False(t, worthMail(bill, now.Add(23*time.Hour)))
	assert.True(t, worthMail(bill, now.Add(24*time.Hour)))
	assert.True(t, worthMail(report(exitAuthentication, managed.Authentication, "401", 0), now), "another matter")
	assert.False(t, worthMail(report(exitAuthentication, managed.Authentication, "401", 0), now.Add(time.Minute)))
	assert.True(t, worthMail(report(exitAuthentication, managed.Authentication, "401", 1), now), "a session met it anew")
	assert.False(t, worthMail(report(exitOK, managed.Drained, "", 1), now))
	assert.True(t, worthMail(report(exitAuthentication, managed.Authentication, "401", 0), now), "it was solved meanwhile")

	assert.False(t, worthMail(report(exitWorkLeft, managed.Paused, "", 0), now))
	for _, r := range []*managed.Report{
		report(exitWorkLeft, managed.Exhausted, "", 1), report(exitWorkLeft, managed.RunStuck, "", 0), report(exitDeadLettered, managed.Drained, "", 1),
		report(exitSetUp, managed.SetUp, "", 0), report(exitTimedOut, managed.TimedOut, "", 1), report(143, managed.Signalled, "", 0),
	} {
		assert.True(t, worthMail(r, now), r.Reason)
	}
}

// Without a file to remember it in, a problem is told each time.
func TestWorthMailWithoutMemory(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, ".launch-told"), 0o700))
	bill := &managed.Report{Inbox: filepath.Join(dir, "inbox.jsonl"), Exit: exitAuthentication, Detail: "402"}
	for range 3 {
		assert.True(t, worthMail(bill, time.Now()))
	}
}

// Of a mail that is too long the end is kept.
func TestMailIsBounded(t *testing.T) {
	var m mail
	line := strings.Repeat("x", 999) + "\n"
	for range 1000 {
		_, err := m.Write([]byte(line))
		require.NoError(t, err)
	}
	_, err := m.Write([]byte("the end\n"))
	require.NoError(t, err)
	var out bytes.Buffer
	m.send(&out)
	assert.LessOrEqual(t, out.Len(), mailRoom+100)
	assert.True(t, strings.HasPrefix(out.String(), "(the lines before these are left out)\n"+line))
	assert.True(t, strings.HasSuffix(out.String(), line+"the end\n"))
}
