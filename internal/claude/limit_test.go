package claude_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/claude"
)

func location(t testing.TB, name string) *time.Location {
	t.Helper()
	loc, err := time.LoadLocation(name)
	require.NoError(t, err)
	return loc
}

// A Saturday in Berlin, 14:30:00 UTC.
func saturday(t testing.TB) time.Time {
	return time.Date(2026, 11, 21, 15, 30, 0, 0, location(t, "Europe/Berlin"))
}

func resets(t *testing.T, now time.Time, messages map[string]string) {
	t.Helper()
	for message, want := range messages {
		got, ok := claude.LimitEnd(message, now)
		if want == "" {
			assert.False(t, ok, "%s: %s", message, got)
			assert.Zero(t, got, message)
			continue
		}
		if assert.True(t, ok, message) {
			assert.Equal(t, want, got.UTC().Format(time.RFC3339), message)
			assert.Equal(t, now.Location(), got.Location(), message)
		}
	}
}

// The forms that the client's code produces in 2.1.329.
func TestEndOfTheClient(t *testing.T) {
	resets(t, saturday(t), map[string]string{
		"You've hit your 5-hour limit · resets 3pm (America/Los_Angeles)":                                                                                      "2026-11-21T23:00:00Z",
		"You've hit your session limit · resets 12:50am (America/Los_Angeles)":                                                                                 "2026-11-22T08:50:00Z",
		"You've hit your weekly limit · resets Nov 23, 5pm (America/Los_Angeles)":                                                                              "2026-11-24T01:00:00Z",
		"You've hit your weekly limit · resets Nov 23, 5:30pm (Europe/Berlin) · progress saved":                                                                "2026-11-23T16:30:00Z",
		"You've hit your Opus limit · resets 7pm (UTC)":                                                                                                        "2026-11-21T19:00:00Z",
		"You've hit your Sonnet limit · resets 2pm (Etc/GMT+5)":                                                                                                "2026-11-21T19:00:00Z",
		"You've hit your Fable limit · resets 11pm (America/Argentina/Buenos_Aires). Run /usage-credits to continue or switch models with /model.":             "2026-11-22T02:00:00Z",
		"You've hit your usage limit · resets 12am (Europe/Berlin)":                                                                                            "2026-11-21T23:00:00Z",
		"You've hit your usage limit · resets 12pm (Europe/Berlin)":                                                                                            "2026-11-22T11:00:00Z",
		"You've hit your limit · resets Nov 28, 2026, 9am (UTC)":                                                                                               "2026-11-28T09:00:00Z",
		"You've hit your limit · resets Nov 28 (UTC)":                                                                                                          "2026-11-28T00:00:00Z",
		"You've hit your team's pooled group budget. It resets Nov 27, 4pm (America/Los_Angeles).":                                                             "2026-11-28T00:00:00Z",
		"You've hit your org's monthly spend limit · ask your admin to raise it at claude.ai/admin-settings/usage · your weekly limit resets 9pm (Asia/Tokyo)": "2026-11-22T12:00:00Z",
		"You're out of usage credits · resets 8:05pm (Pacific/Auckland) · progress saved":                                                                      "2026-11-22T07:05:00Z",
		"API Error: Request rejected (429) · spend limit reached · resets Nov 28":                                                                              "2026-11-27T23:00:00Z",
		"This request exceeds your group's budget. Ask your organization's admins to raise it, or try again after it resets on November 28 at 00:00 UTC.":      "2026-11-28T00:00:00Z",
		"Fast limit reached, fast mode paused · resets in 4m 30s":                                                                                              "2026-11-21T14:34:30Z",
		"Fast mode paused: your cloud provider refused a fast request · trying again in 1h":                                                                    "2026-11-21T15:30:00Z",
		"rate limited until 4:12pm": "2026-11-21T15:12:00Z",
		"daily publish limit for your plan reached — resets at UTC midnight":              "2026-11-22T00:00:00Z",
		"send a comment to Claude again after the limit resets at midnight UTC to retry.": "2026-11-22T00:00:00Z",
		"Lower-priority mode is back on until your limit resets at 8pm.":                  "2026-11-21T19:00:00Z",
		"5-hour limit reset already used · available again Nov 24, 6am":                   "2026-11-24T05:00:00Z",

		// Codex 0.169.0.
		"You’ve hit your usage limit. Upgrade to Pro (https://chatgpt.com/explore/pro), visit https://chatgpt.com/settings/usage to purchase more credits or try again at Nov 26th, 2026 11:18 AM.": "2026-11-26T10:18:00Z",
		"You’ve hit your usage limit. Try again at Nov 22nd, 2026 1:05 AM.": "2026-11-22T00:05:00Z",
		"You’ve hit your usage limit. Try again at 4:12 PM.":                "2026-11-21T15:12:00Z",

		// Without a time.
		"API Error: Request rejected (429) · this may be a temporary capacity issue. If it persists, check https://status.claude.com.":                        "",
		"API Error: Server is temporarily limiting requests (not your usage limit) · Rate limited":                                                            "",
		"API Error: 529 Overloaded. This is a server-side issue, usually temporary — try again in a moment. If it persists, check https://status.claude.com.": "",
		"Usage is paused for your organization. For help, please contact support.":                                                                            "",
		"You've hit your monthly spend limit.":             "",
		"You've hit your limit · resets 7pm (Etc/Unknown)": "", // the client where it does not know its own
		"No response requested.":                           "",
	})
}

// Forms of the API and of older releases, from public bug reports.
func TestEndOfOthers(t *testing.T) {
	resets(t, saturday(t), map[string]string{
		"Claude AI usage limit reached|1795287600":                                                             "2026-11-21T19:00:00Z",
		"Claude AI usage limit reached|1795287600000":                                                          "2026-11-21T19:00:00Z",
		"Claude usage limit reached. Your limit will reset at 5pm (Europe/Warsaw).":                            "2026-11-21T16:00:00Z",
		"Claude usage limit reached. Your limit will reset at Nov 26, 10am.":                                   "2026-11-26T09:00:00Z",
		"You’ve hit your limit for Claude messages. Limits will reset at 9:30 AM. View":                        "2026-11-22T08:30:00Z",
		"5-hour limit reached ∙ resets 3:30 PM":                                                                "2026-11-21T14:30:00Z",
		"You have reached your specified API usage limits. You will regain access on 2026-11-29 at 00:00 UTC.": "2026-11-29T00:00:00Z",
		"You have reached your specified API usage limits. You will regain access on 2026-12-01 at 00:00 UTC.": "", // not within eight days
		"This request would exceed your account's rate limit. Please try again later.":                         "",
		"resets at 6am tomorrow": "2026-11-22T05:00:00Z",
	})
}

func TestEndOfNeighbours(t *testing.T) {
	resets(t, saturday(t), map[string]string{
		"reset at 2026-11-21 18:00 UTC":                        "2026-11-21T18:00:00Z",
		"resets 2026-11-21T18:00:00Z":                          "2026-11-21T18:00:00Z",
		"resets at 2026-11-21T18:00:00.123456+01:00.":          "2026-11-21T17:00:00Z",
		"resets at 2026-11-21T18:00:00-0800":                   "2026-11-22T02:00:00Z",
		"resets at 2026-11-21 18:00":                           "2026-11-21T17:00:00Z",
		`{"resets_at":1795287600}`:                             "2026-11-21T19:00:00Z",
		`{"resets_at":"2026-11-21T19:00:00Z"}`:                 "2026-11-21T19:00:00Z",
		`{\"resetsAt\": 1795287600}`:                           "2026-11-21T19:00:00Z",
		"Retry-After: 30":                                      "2026-11-21T14:30:30Z",
		"retry after 90 seconds":                               "2026-11-21T14:31:30Z",
		"retry_after=1.5":                                      "2026-11-21T14:30:01Z",
		"Retry-After: Sat, 21 Nov 2026 18:00:00 GMT":           "2026-11-21T18:00:00Z",
		"retry after 2026-11-21T18:00:00Z":                     "2026-11-21T18:00:00Z",
		"retry after 18:00":                                    "2026-11-21T17:00:00Z",
		"try again in 5 minutes":                               "2026-11-21T14:35:00Z",
		"Try again in 2h 30m":                                  "2026-11-21T17:00:00Z",
		"retry after 1500 ms":                                  "2026-11-21T14:30:01Z",
		"try again in 2h30m.":                                  "2026-11-21T17:00:00Z",
		"try again in 1 hour and 5 minutes":                    "2026-11-21T15:35:00Z",
		"try again in 2 hours, 5 minutes and 1 second":         "2026-11-21T16:35:01Z",
		"try again in about an hour":                           "2026-11-21T15:30:00Z",
		"Please wait 45s before trying again":                  "2026-11-21T14:30:45Z",
		"resets in 3d 2h":                                      "2026-11-24T16:30:00Z",
		"resets in 1 week":                                     "2026-11-28T14:30:00Z",
		"try again after 3 p.m. (America/New_York)":            "2026-11-21T20:00:00Z",
		"try again at 3 PM":                                    "2026-11-22T14:00:00Z",
		"resets 3\u202fPM (America/New_York)":                  "2026-11-21T20:00:00Z",
		"RESETS AT 18:00 utc":                                  "2026-11-21T18:00:00Z",
		"until midnight":                                       "2026-11-21T23:00:00Z",
		"resets Nov. 23":                                       "2026-11-22T23:00:00Z",
		"resets 4pm (your time)":                               "2026-11-21T15:00:00Z",
		"resets Dec 20, 3pm. Your 5-hour limit resets at 4pm.": "2026-11-21T15:00:00Z", // the first that can be
	})
}

func TestWhatIsNoEnd(t *testing.T) {
	for _, message := range []string{
		"", "resets", "resets at", "resets in", "retry after", "|", "reached|", "3pm", "in 5 minutes", "1795287600", "18:00 UTC",
		"API Error: Request rejected (429) · slow down", "gave up after 10 retries", "reset 3 times", "version 2.1.329 resets",
		"resets at 2.1.329", "retry after 2.1.329", "retry after 3 attempts", "try again (429)", "retry after (429)",
		"try again in a moment", "try again in a few minutes", "try again in 5", "resets in 5", "resets 5", "resets 2026",
		"until 10", "available at https://status.claude.com", "available at 192.0.2.1:8080", "available at localhost:8080",
		"resets 25:00", "resets 13pm", "resets 10:60", "resets 1:1", "resets 10:30:2026", "resets 10:30:30:30",
		"resets 3pmx", "resets 3pm4", "resets 10:30x", "resets 10:00-11:00", "resets at 12:30.5.1",
		"resets 3pm (Mars/Olympus)", "resets 3pm (PST)", "resets 3pm PST", "resets 3pm (Local)", "resets 3pm (../../etc/passwd)",
		"resets 3pm (" + strings.Repeat("A", 100) + ")", "resets 18:00 UTC+99", "resets 18:00 UTC+12345", "resets at 2026-11-21T18:00:00+99:00",
		"resets Feb 30, 3pm", "resets Nov 31", "resets Nov 0", "resets 2026-13-01", "resets 2026-11-31", "resets Nov 23rdx",
		"resets Nov 20, 5pm", "resets Dec 1, 5pm", "resets Nov 21", "resets Nov 23, 2025, 5pm", "resets Nov 23, 2027, 5pm",
		"resets in 9 days", "resets in 99999999999999999999 minutes", "resets in 999999999 weeks", "resets in 8 days 1 s",
		"reached|179528760", "reached|17952876001", "reached|1795287600x", "reached|1700000000", "reached|9999999999",
		"available at noon", "resets Monday at 9am", "resets at 18:00 UTC+2", "resets at 18:00 GMT-05:30", "resets at 18:00Z",
		"resets at 1700000000", "resets today at 3pm", "until 5 km", "connection reset by peer 10:30:00",
	} {
		got, ok := claude.LimitEnd(message, saturday(t))
		assert.False(t, ok, "%s: %s", message, got)
		assert.Zero(t, got)
	}
}

// The client leaves out the seconds, so the time that it names may be over.
func TestEndJustOver(t *testing.T) {
	now := saturday(t).Add(59 * time.Second)
	resets(t, now, map[string]string{
		"resets 3:30pm":                  "2026-11-21T14:30:00Z",
		"resets 3:29pm":                  "2026-11-22T14:29:00Z",
		"reached|1795271400":             "2026-11-21T14:30:00Z",
		"reached|1795271398":             "",
		"resets at 2026-11-21T14:29:58Z": "",
		"resets at 2026-11-21T14:30:00Z": "2026-11-21T14:30:00Z",
		"resets at 2026-11-29T14:30:59Z": "2026-11-29T14:30:59Z",
		"resets at 2026-11-29T14:31:00Z": "",
	})
	midnight := time.Date(2026, 11, 22, 0, 0, 20, 0, time.UTC)
	resets(t, midnight, map[string]string{
		"resets 23:59:30": "2026-11-21T23:59:30Z",
		"resets 12am":     "2026-11-22T00:00:00Z",
	})
}

func TestEndOverTheYear(t *testing.T) {
	now := time.Date(2026, 12, 31, 23, 30, 0, 0, time.UTC)
	resets(t, now, map[string]string{
		"resets 5am (UTC)":                "2027-01-01T05:00:00Z",
		"resets Jan 3, 5pm (UTC)":         "2027-01-03T17:00:00Z",
		"resets Jan 3, 2027, 5pm (UTC)":   "2027-01-03T17:00:00Z",
		"resets Dec 31, 11:45pm (UTC)":    "2026-12-31T23:45:00Z",
		"resets Jan 1, 10am (Asia/Tokyo)": "2027-01-01T01:00:00Z",
	})
	resets(t, time.Date(2027, 1, 1, 0, 0, 10, 0, time.UTC), map[string]string{
		"resets Dec 31, 23:59:50": "2026-12-31T23:59:50Z",
	})
	resets(t, time.Date(2026, 8, 31, 0, 0, 0, 0, time.UTC), map[string]string{"resets Sep. 3, 3pm": "2026-09-03T15:00:00Z"})
	resets(t, time.Date(2028, 2, 27, 0, 0, 0, 0, time.UTC), map[string]string{"resets Feb 29, 3pm": "2028-02-29T15:00:00Z"})
	resets(t, time.Date(2027, 2, 27, 0, 0, 0, 0, time.UTC), map[string]string{"resets Feb 29, 3pm": ""})
}

// In Los Angeles the clocks went from 2:00 to 3:00 on 8 March 2026, and go from 2:00
// back to 1:00 on 1 November.
func TestEndWhereClocksArePut(t *testing.T) {
	zone := location(t, "America/Los_Angeles")
	resets(t, time.Date(2026, 3, 8, 0, 0, 0, 0, zone), map[string]string{
		"resets 1:30am": "2026-03-08T09:30:00Z",
		"resets 2:30am": "2026-03-08T10:30:00Z", // no clock shows it
		"resets 3:30am": "2026-03-08T10:30:00Z",
	})
	before := time.Date(2026, 11, 1, 7, 0, 0, 0, time.UTC).In(zone)
	resets(t, before, map[string]string{
		"resets 1:30am": "2026-11-01T08:30:00Z",
		"resets 2:30am": "2026-11-01T10:30:00Z",
	})
	resets(t, before.Add(2*time.Hour), map[string]string{"resets 1:30am": "2026-11-01T09:30:00Z"})
	resets(t, before.Add(3*time.Hour), map[string]string{"resets 1:30am": "2026-11-02T09:30:00Z"})
	howe := time.Date(2026, 4, 4, 15, 10, 0, 0, time.UTC).In(location(t, "Australia/Lord_Howe")) // half an hour back
	resets(t, howe, map[string]string{"resets 1:45am": "2026-04-04T15:15:00Z"})
}

func TestEndReadsTheStartOfALongMessage(t *testing.T) {
	long := strings.Repeat("resets 3pm (A/B) ", 1<<16)
	_, ok := claude.LimitEnd(long+" resets 3pm", saturday(t))
	assert.False(t, ok)
	_, ok = claude.LimitEnd("resets 3pm (UTC) "+long, saturday(t))
	assert.True(t, ok)
}

func FuzzEnd(f *testing.F) {
	for _, s := range []string{
		"You've hit your weekly limit · resets Nov 23, 5:30pm (Europe/Berlin) · progress saved", "reached|1795287600",
		"retry after 1.5 s", "try again in 1 hour and 5 minutes", "resets at 2026-11-21T18:00:00.5+01:00", "until Sat, 21 Nov 2026 18:00:00 GMT",
		"resets 00:00 UTC on 23rd Nov", "available again tomorrow at noon", "resets at 18:00 UTC+2", "resets 2:30am (America/Los_Angeles)",
	} {
		f.Add(s, int64(1795271400))
		f.Add(s, int64(1772958600))
	}
	zone := location(f, "America/Los_Angeles")
	f.Fuzz(func(t *testing.T, message string, seconds int64) {
		const years = 100 * 365 * 86400
		now := time.Unix(seconds%years, 0).In(zone)
		at, ok := claude.LimitEnd(message, now)
		if !ok {
			assert.Zero(t, at)
			return
		}
		assert.False(t, at.Before(now.Add(-time.Minute)), at)
		assert.False(t, at.After(now.Add(8*24*time.Hour)), at)
		again, _ := claude.LimitEnd(message, now)
		assert.Equal(t, at, again)
	})
}
