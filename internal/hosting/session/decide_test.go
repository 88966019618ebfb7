package session

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"heartbeat/internal/hosting/folder"
)

func TestDecide(t *testing.T) {
	t.Parallel()
	var (
		done    = folder.Entries{Answered: 2}
		left    = folder.Entries{Answered: 1, DeadLettered: 1}
		nothing = folder.Entries{DeadLettered: 1}
		fine    = &folder.Result{ResultLine: folder.ResultLine{Subtype: "success"}}
		ok      = &folder.Exit{Code: 0}
		one     = &folder.Exit{Code: 1}
		killed  = &folder.Exit{Code: 1, Signal: "SIGKILL"}
		resets  = time.Date(2026, 11, 22, 13, 0, 0, 0, time.UTC)
		limited = &folder.RateLimit{Detail: "rate_limit"}
	)
	const dead = "; 0 of 1 prompt answered, 1 set aside as dead letters"
	for name, c := range map[string]struct {
		facts Facts
		want  Decision
	}{
		"all answered":             {Facts{State: folder.State{Facts: folder.Facts{Entries: done}, Outcome: folder.Outcome{Result: fine, Exit: ok}}}, Decision{folder.Completed, "", 0}},
		"answered, exit 1":         {Facts{State: folder.State{Facts: folder.Facts{Entries: done}, Outcome: folder.Outcome{Result: fine, Exit: one}}}, Decision{folder.Completed, "", 1}},
		"answered, never exited":   {Facts{State: folder.State{Facts: folder.Facts{Entries: done}, Outcome: folder.Outcome{Summary: folder.Summary{Ended: endedLingering}, Result: fine, Exit: killed}}}, Decision{folder.Completed, "", 1}},
		"answered, host killed":    {Facts{State: folder.State{Facts: folder.Facts{Entries: done}}, HostDied: true}, Decision{folder.Completed, "", 0}},
		"answered, rate limit met": {Facts{State: folder.State{Facts: folder.Facts{Entries: done}, Outcome: folder.Outcome{RateLimit: limited, Exit: ok}}}, Decision{folder.Completed, "", 0}},
		"answered, time over":      {Facts{State: folder.State{Facts: folder.Facts{Entries: done}, Outcome: folder.Outcome{Summary: folder.Summary{Ended: endedByTimeout}, Exit: killed}}}, Decision{folder.Completed, "", 1}},
		"answered, then cancelled": {Facts{State: folder.State{Facts: folder.Facts{Entries: done}, Outcome: folder.Outcome{Cancel: &folder.Cancel{By: "SIGTERM"}, Exit: killed}}},
			Decision{folder.Cancelled, "cancelled by SIGTERM, after every prompt had been answered", 1}},
		"cancelled": {Facts{State: folder.State{Facts: folder.Facts{Entries: nothing}, Outcome: folder.Outcome{Cancel: &folder.Cancel{By: "SIGTERM"}, Exit: &folder.Exit{Code: 143}}}},
			Decision{folder.Cancelled, "cancelled by SIGTERM", 143}},
		"cancelled before start": {Facts{State: folder.State{Facts: folder.Facts{Entries: folder.Entries{Queued: 1}}, Outcome: folder.Outcome{Cancel: &folder.Cancel{By: "heartbeat-host cancel"}}}},
			Decision{folder.Cancelled, "cancelled by heartbeat-host cancel", 1}},
		"cancelled, host killed": {Facts{State: folder.State{Facts: folder.Facts{Entries: nothing}, Outcome: folder.Outcome{Cancel: &folder.Cancel{By: "SIGTERM"}}}, HostDied: true}, Decision{folder.Cancelled, "cancelled by SIGTERM", 1}},
		"cancelled while broken": {Facts{State: folder.State{Facts: folder.Facts{Entries: nothing}, Outcome: folder.Outcome{Cancel: &folder.Cancel{By: "SIGTERM"}, Broken: "x"}}}, Decision{folder.Cancelled, "cancelled by SIGTERM", 1}},
		"exit 0, not answered": {Facts{State: folder.State{Facts: folder.Facts{Entries: left}, Outcome: folder.Outcome{Result: fine, Exit: ok}}},
			Decision{folder.Failed, "claude exited with code 0; 1 of 2 prompts answered, 1 set aside as dead letters", 0}},
		"exit 1": {Facts{State: folder.State{Facts: folder.Facts{Entries: nothing}, Outcome: folder.Outcome{Exit: one}}}, Decision{folder.Failed, "claude exited with code 1" + dead, 1}},
		"a flag that it refuses": {Facts{State: folder.State{Facts: folder.Facts{Entries: folder.Entries{Queued: 1}}, Outcome: folder.Outcome{Exit: one, Stderr: "warning: x\nerror: unknown option '--y'\n"}}},
			Decision{folder.Failed, "claude exited with code 1: error: unknown option '--y'; 0 of 1 prompt answered, 1 waiting", 1}},
		"a result that is an error": {Facts{State: folder.State{Facts: folder.Facts{Entries: nothing}, Outcome: folder.Outcome{Result: &folder.Result{ResultLine: folder.ResultLine{Subtype: "error_max_turns", IsError: true}}, Exit: one}}},
			Decision{folder.Failed, "claude exited with code 1; its result is an error (error_max_turns)" + dead, 1}},
		"an error with a text": {Facts{State: folder.State{Facts: folder.Facts{Entries: nothing}, Outcome: folder.Outcome{Result: &folder.Result{ResultLine: folder.ResultLine{Subtype: "success", IsError: true}}, ErrorText: "API Error:\n529", Exit: one}}},
			Decision{folder.Failed, "claude exited with code 1; its result is an error: API Error: 529" + dead, 1}},
		"killed": {Facts{State: folder.State{Facts: folder.Facts{Entries: folder.Entries{InFlight: 1}}, Outcome: folder.Outcome{Exit: killed}}},
			Decision{folder.Failed, "claude was ended by SIGKILL; 0 of 1 prompt answered, 1 in flight", 1}},
		"out of memory": {Facts{State: folder.State{Facts: folder.Facts{Entries: folder.Entries{Queued: 1}}, Outcome: folder.Outcome{Exit: &folder.Exit{Code: 1, Signal: "SIGABRT"}}}, MemoryMax: 4096},
			Decision{folder.Failed, "claude was ended by SIGABRT, as it is when 4096 bytes of memory are too few for it (--memory-max); 0 of 1 prompt answered, 1 waiting", 1}},
		"no entry at all": {Facts{State: folder.State{Outcome: folder.Outcome{Exit: ok}}}, Decision{folder.Failed, "claude exited with code 0; no prompt was answered", 0}},
		"never started": {Facts{State: folder.State{Facts: folder.Facts{Entries: folder.Entries{Queued: 1}}, Outcome: folder.Outcome{Broken: "claude: not found"}}},
			Decision{folder.Failed, "claude: not found", 1}},
		"host killed": {Facts{State: folder.State{Facts: folder.Facts{Entries: folder.Entries{Queued: 1}}}, HostDied: true},
			Decision{folder.Failed, "the session's host was killed; 0 of 1 prompt answered, 1 waiting", 1}},
		"time over": {Facts{State: folder.State{Facts: folder.Facts{Entries: nothing}, Outcome: folder.Outcome{Summary: folder.Summary{Ended: endedByTimeout}, EndedAfter: "1m0s", Exit: killed}}},
			Decision{folder.Timeout, "the session was ended after 1m0s (--timeout)" + dead, 1}},
		"stalled": {Facts{State: folder.State{Facts: folder.Facts{Entries: nothing}, Outcome: folder.Outcome{Summary: folder.Summary{Ended: endedByStall}, EndedAfter: "20m0s", Exit: killed}}},
			Decision{folder.Failed, "the session was ended after 20m0s without progress (--stall-action cancel)" + dead, 1}},
		"lingered": {Facts{State: folder.State{Facts: folder.Facts{Entries: nothing}, Outcome: folder.Outcome{Summary: folder.Summary{Ended: endedLingering}, EndedAfter: "30s", Exit: killed, Result: fine}}},
			Decision{folder.Failed, "claude did not exit within 30s after its result, and was ended" + dead, 1}},
		"rate limit": {Facts{State: folder.State{Facts: folder.Facts{Entries: nothing}, Outcome: folder.Outcome{RateLimit: &folder.RateLimit{Detail: "You've hit your limit", ResetsAt: &resets}, Exit: one}}},
			Decision{folder.RateLimited, "You've hit your limit (resets at 2026-11-22T13:00:00Z)", 1}},
		"rate limit, exit 0":      {Facts{State: folder.State{Facts: folder.Facts{Entries: left}, Outcome: folder.Outcome{RateLimit: limited, Exit: ok}}}, Decision{folder.RateLimited, "rate_limit", 0}},
		"rate limit until killed": {Facts{State: folder.State{Facts: folder.Facts{Entries: left}, Outcome: folder.Outcome{RateLimit: limited}}, HostDied: true}, Decision{folder.RateLimited, "rate_limit", 1}},
		"rate limit until over":   {Facts{State: folder.State{Facts: folder.Facts{Entries: left}, Outcome: folder.Outcome{Summary: folder.Summary{Ended: endedByTimeout}, RateLimit: limited, Exit: killed}}}, Decision{folder.RateLimited, "rate_limit", 1}},
	} {
		assert.Equal(t, c.want, Decide(c.facts), name)
	}
}
