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

	"heartbeat/internal/cli"
	"heartbeat/internal/see"
	"heartbeat/internal/supervise"
)

// A problem that stays until a person solves it is told, and again a day later, but not
// by each launcher that meets it.
func TestWorthMail(t *testing.T) {
	inbox, now := filepath.Join(t.TempDir(), "inbox.jsonl"), time.Now()
	report := func(exit int, reason supervise.Reason, detail string, sessions int) *supervise.Report {
		return &supervise.Report{Inbox: inbox, Exit: exit, Reason: reason, Detail: detail, Sessions: sessions, SessionIDs: make([]string, sessions)}
	}
	bill := report(cli.ExitPerson, supervise.Refused, "unknown: API Error: 402", 0)
	assert.True(t, worthMail(bill, now))
	assert.False(t, worthMail(bill, now.Add(time.Hour)))
	assert.False(t, worthMail(report(cli.ExitLater, supervise.Busy, "", 0), now.Add(time.Hour)))
	assert.False(t, worthMail(bill, now.Add(23*time.Hour)))
	assert.True(t, worthMail(bill, now.Add(24*time.Hour)))
	assert.True(t, worthMail(report(cli.ExitPerson, supervise.Authentication, "401", 0), now), "another matter")
	assert.False(t, worthMail(report(cli.ExitPerson, supervise.Authentication, "401", 0), now.Add(time.Minute)))
	assert.True(t, worthMail(report(cli.ExitPerson, supervise.Authentication, "401", 1), now), "a session met it anew")
	untrusted := report(cli.ExitPerson, supervise.SetUp, "not trusted", 0)
	untrusted.Sessions = 1
	assert.True(t, worthMail(untrusted, now))
	assert.False(t, worthMail(untrusted, now.Add(time.Minute)))
	untrusted.DeadLettered = 1
	assert.True(t, worthMail(untrusted, now.Add(time.Minute)), "it set something aside")
	assert.False(t, worthMail(report(cli.ExitOK, supervise.Drained, "", 1), now))
	assert.True(t, worthMail(report(cli.ExitPerson, supervise.Authentication, "401", 0), now), "it was solved meanwhile")

	assert.False(t, worthMail(report(cli.ExitLater, supervise.Paused, "", 0), now))
	for _, r := range []*supervise.Report{
		report(cli.ExitLater, supervise.Exhausted, "", 1), report(cli.ExitLater, supervise.RunStuck, "", 0), report(cli.ExitDeadLettered, supervise.Drained, "", 1),
		report(cli.ExitLater, supervise.Trouble, "", 0), report(cli.ExitTimedOut, supervise.TimedOut, "", 1), report(143, supervise.Signalled, "", 0),
	} {
		assert.True(t, worthMail(r, now), r.Reason)
	}
}

// Without a file to remember it in, a problem is told each time.
func TestWorthMailWithoutMemory(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, ".launch-told"), 0o700))
	bill := &supervise.Report{Inbox: filepath.Join(dir, "inbox.jsonl"), Exit: cli.ExitPerson, Detail: "402"}
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

// A command of --on-result that takes nothing is told, once a day, although the work goes well.
func TestWorthMailOfAConsumer(t *testing.T) {
	now := time.Now()
	r := &supervise.Report{Inbox: filepath.Join(t.TempDir(), "inbox.jsonl"), Reason: supervise.Drained}
	assert.False(t, worthMail(r, now))
	r.Troubles = []see.Trouble{{Kind: see.KindLetters}, {Kind: see.KindConsumer, Text: "the consumer launch takes no results"}}
	assert.True(t, worthMail(r, now))
	assert.False(t, worthMail(r, now.Add(time.Hour)))
	assert.True(t, worthMail(r, now.Add(24*time.Hour)))
}
