package session

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestDecide(t *testing.T) {
	var (
		done    = Entries{Answered: 2}
		left    = Entries{Answered: 1, DeadLettered: 1}
		nothing = Entries{DeadLettered: 1}
		fine    = &Result{Subtype: "success"}
		ok      = &Exit{Code: 0}
		killed  = &Exit{Code: -1, Signal: "SIGKILL"}
		resets  = time.Date(2026, 11, 22, 13, 0, 0, 0, time.UTC)
	)
	for name, c := range map[string]struct {
		facts Facts
		want  Decision
	}{
		"all answered":             {Facts{Result: fine, Exit: ok, Entries: done}, Decision{Completed, "", 0}},
		"answered, exit 1":         {Facts{Result: fine, Exit: &Exit{Code: 1}, Entries: done}, Decision{Completed, "", 1}},
		"answered, never exited":   {Facts{Result: fine, Exit: killed, Lingered: 30 * time.Second, Entries: done}, Decision{Completed, "", 1}},
		"answered, host killed":    {Facts{HostDied: true, Entries: done}, Decision{Completed, "", 0}},
		"answered, rate limit met": {Facts{RateLimit: "rate_limit", Exit: ok, Entries: done}, Decision{Completed, "", 0}},
		"answered, time over":      {Facts{TimedOut: time.Hour, Exit: killed, Entries: done}, Decision{Completed, "", 1}},
		"answered, then cancelled": {Facts{Cancelled: "SIGTERM", Exit: killed, Entries: done},
			Decision{Cancelled, "cancelled by SIGTERM, after every prompt had been answered", 1}},
		"cancelled": {Facts{Cancelled: "SIGTERM", Exit: &Exit{Code: 143}, Entries: nothing}, Decision{Cancelled, "cancelled by SIGTERM", 143}},
		"cancelled before start": {Facts{Cancelled: "heartbeat-host cancel", Entries: Entries{Queued: 1}},
			Decision{Cancelled, "cancelled by heartbeat-host cancel", 1}},
		"cancelled while broken": {Facts{Cancelled: "SIGTERM", Broken: "x", Entries: nothing}, Decision{Cancelled, "cancelled by SIGTERM", 1}},
		"exit 0, not answered": {Facts{Result: fine, Exit: ok, Entries: left},
			Decision{Failed, "claude exited with code 0; 1 of 2 prompts answered, 1 set aside as dead letters", 0}},
		"exit 1": {Facts{Exit: &Exit{Code: 1}, Entries: nothing},
			Decision{Failed, "claude exited with code 1; 0 of 1 prompt answered, 1 set aside as dead letters", 1}},
		"a result that is an error": {Facts{Result: &Result{"error_max_turns", true, ""}, Exit: &Exit{Code: 1}, Entries: nothing},
			Decision{Failed, "claude exited with code 1; its result is an error (error_max_turns); 0 of 1 prompt answered, 1 set aside as dead letters", 1}},
		"killed": {Facts{Exit: killed, Entries: Entries{InFlight: 1}},
			Decision{Failed, "claude was ended by SIGKILL; 0 of 1 prompt answered, 1 in flight", 1}},
		"no entry at all": {Facts{Exit: ok}, Decision{Failed, "claude exited with code 0; no prompt was answered", 0}},
		"never started":   {Facts{Broken: "claude: not found", Entries: Entries{Queued: 1}}, Decision{Failed, "claude: not found", 1}},
		"host killed": {Facts{HostDied: true, Entries: Entries{Queued: 1}},
			Decision{Failed, "the session's host was killed; 0 of 1 prompt answered, 1 waiting", 1}},
		"time over": {Facts{TimedOut: time.Minute, Exit: killed, Entries: nothing},
			Decision{TimedOut, "the session was ended after 1m0s (--timeout); 0 of 1 prompt answered, 1 set aside as dead letters", 1}},
		"stalled": {Facts{Stalled: 20 * time.Minute, Exit: killed, Entries: nothing},
			Decision{Failed, "the session was ended after 20m0s without progress (--stall-action cancel); 0 of 1 prompt answered, 1 set aside as dead letters", 1}},
		"lingered": {Facts{Lingered: 30 * time.Second, Exit: killed, Result: fine, Entries: nothing},
			Decision{Failed, "claude did not exit within 30s after its result, and was ended; 0 of 1 prompt answered, 1 set aside as dead letters", 1}},
		"rate limit": {Facts{RateLimit: "You've hit your limit", ResetsAt: resets, Exit: &Exit{Code: 1}, Entries: nothing},
			Decision{RateLimited, "You've hit your limit (resets at 2026-11-22T13:00:00Z)", 1}},
		"rate limit, exit 0":      {Facts{RateLimit: "rate_limit", Exit: ok, Entries: left}, Decision{RateLimited, "rate_limit", 0}},
		"rate limit until killed": {Facts{RateLimit: "rate_limit", HostDied: true, Entries: left}, Decision{RateLimited, "rate_limit", 1}},
	} {
		assert.Equal(t, c.want, Decide(c.facts), name)
	}
}
