package stuck

import (
	"slices"
	"time"

	"github.com/stretchr/testify/require"
)

// states are all of the table.
func states() []state {
	return slices.Concat(ofTheModel(), ofPersons(), ofProcesses(), ofFiles(), ofRuns())
}

// flies brings about that an entry is in flight, and the model is asked.
func flies(act string, flags ...string) func(r *rig) {
	return func(r *rig) {
		r.says(act)
		r.adds("e1")
		r.start(flags...)
		r.asked("e1")
	}
}

// wakes are the flags with which a hook in the background wakes the session.
var wakes = map[wiring][]string{hook: {"--rewake"}, launcher: {"--mode", "persist"}}

// answers has the model answer from now on.
func answers(r *rig) { r.says("answer") }

// ofTheModel are those in which the client or the model does not go on.
func ofTheModel() []state {
	fails := func(failure string, in map[wiring]Seen, flags ...string) func(name string) state {
		return func(name string) state {
			return state{name, in, func(r *rig) {
				if r.wiring == timer {
					r.says("fail " + failure)
					r.adds("e1")
					r.start(slices.Concat(flags, []string{"--patience", "1ms"})...)
					return
				}
				flies("fail "+failure, flags...)(r)
			}, func(r *rig) {
				answers(r)
				r.write("quit", "")
				if r.wiring == hook {
					r.until("the session to end", func() bool { return r.look().JSON("status").State != "failed" })
					r.does("recover", "--on-orphan", "retry")
				}
				r.does("resume")
			}}
		}
	}
	turnFailed := func(says string) Seen { return Seen{Kind: "turn-failed", State: "failed", Says: says} }
	backsOff := func(says string) Seen { return Seen{Kind: "backing-off", State: "backing off", Says: says} }
	// The first back-off, which nobody lengthens, may be over before five places were asked.
	brief := func(s Seen) Seen { s.Kind = ""; return s }
	woken := func(name, failure string, s Seen) state {
		return state{name, all(s, hook, launcher), func(r *rig) {
			r.start(wakes[r.wiring]...)
			r.waiter()
			r.says("fail " + failure)
			r.adds("e1")
			r.asked("e1")
		}, func(r *rig) {
			answers(r)
			r.does("resume")
		}}
	}
	return []state{
		{
			"its check cannot be run", all(Seen{Kind: "unchecked", State: "unchecked", Says: "cannot be checked: exit status 75"}, hook, launcher, host),
			func(r *rig) {
				answers(r)
				r.adds("e1")
				r.start("--check", "test -e '"+r.path("ready")+"' || exit 75")
			},
			func(r *rig) { r.write("ready", "") },
		},
		{
			"the model hangs", all(Seen{Kind: "stalled", State: "answering", Says: "nothing has moved for 1h", Wrong: "waiting for an answer to the entry e1 since .* \\(1h"}, hook, launcher, host),
			func(r *rig) {
				flies("hang")(r)
				r.shifts(-time.Hour)
				r.refreshes()
			},
			answers,
		},
		{
			"a tool runs", all(Seen{Kind: "", State: "answering", Says: "waiting for an answer to the entry e1 since .* \\(25m"}, hook, launcher),
			func(r *rig) {
				flies("tool")(r)
				r.until("the tool to run", func() bool { return there(r.dir, "runs") })
				r.shifts(-25 * time.Minute)
				r.refreshes()
			},
			answers,
		},
		fails("rate_limit: API Error: Request rejected (429), try again in 2 hours", map[wiring]Seen{
			hook:     turnFailed("rate_limit.*429"),
			launcher: backsOff("rate_limit"), host: backsOff("rate_limit"), timer: backsOff("rate_limit"),
		}, "--on-orphan", "retry")("rate limit"),
		fails("server_error: API Error: 529 Overloaded", map[wiring]Seen{
			hook:     turnFailed("server_error.*529"),
			launcher: backsOff("server_error"), host: backsOff("server_error"), timer: brief(backsOff("server_error")),
		}, "--on-orphan", "retry")("API 5xx"),
		fails("unknown: API Error: Unable to connect to API (ConnectionRefused)", map[wiring]Seen{
			hook:     turnFailed("ConnectionRefused"),
			launcher: backsOff("ConnectionRefused"), host: backsOff("ConnectionRefused"), timer: brief(backsOff("ConnectionRefused")),
		}, "--on-orphan", "retry")("network gone"),
		fails("authentication_failed: API Error: 401 OAuth token has expired", map[wiring]Seen{
			hook:     turnFailed("authentication_failed.*401"),
			launcher: {Kind: "paused", State: "paused", Says: "authentication_failed"}, host: {Kind: "paused", State: "paused", Says: "authentication_failed"},
			timer: {Kind: "paused", State: "paused", Says: "authentication_failed"},
		}, "--on-orphan", "retry")("login expired"),
		woken("rate limit, woken", "rate_limit: API Error: Request rejected (429), try again in 2 hours", backsOff("rate_limit.*429.*takes what is next within moments")),
		woken("network gone, woken", "unknown: API Error: Unable to connect to API (ConnectionRefused)", backsOff("ConnectionRefused.*takes what is next within moments")),
		woken("login expired, woken", "authentication_failed: API Error: 401 OAuth token has expired", Seen{Kind: "paused", State: "paused", Says: "authentication_failed"}),
		{
			"day's limit reached", all(Seen{Kind: "day-over-limit", State: "paused", Says: "day"}, hook, launcher, timer),
			func(r *rig) {
				r.says("spend 1000")
				r.adds("e1", "e2")
				r.start("--max-tokens-per-day", "100")
			},
			func(r *rig) {
				r.write("quit", "")
				answers(r)
				r.does("resume")
			},
		},
		{
			"day near its limit", all(Seen{Kind: "day-near-limit", State: "empty", Says: "the limit of a day"}, hook, launcher, timer),
			func(r *rig) {
				r.says("spend 90")
				r.adds("e1")
				r.start("--max-tokens-per-day", "100")
				r.hasAnswered(1)
			},
			func(r *rig) {
				r.write("quit", "")
				answers(r)
				r.adds("e2")
				r.start("--max-tokens-per-day", "1000")
			},
		},
		{
			"a consumer takes nothing", all(Seen{Kind: "consumer-stuck", State: "empty", Says: "the consumer mail has taken no results since .*exit status 9"}, hook, launcher, timer),
			func(r *rig) {
				r.adds("e1")
				r.start()
				r.hasAnswered(1)
				_, err := r.run("", "results", "--exec", "exit 9", "--as", "mail", "--patience", "0")
				require.Error(r.t, err)
			},
			func(r *rig) { r.does("results", "--exec", "true", "--as", "mail") },
		},
		{
			"poison entry", all(Seen{Kind: "dead-letters", State: "empty", Says: "1 dead letter", Wrong: "nothing is queued", Letters: 1}, hook, launcher, host, timer),
			func(r *rig) {
				r.says("die")
				r.adds("e1")
				p := r.start("--on-orphan", "deadletter")
				r.ends(p)
				if r.wiring == hook {
					r.does("recover")
				}
			},
			func(r *rig) { r.does("dead-letter", "purge", "--all", "--yes") },
		},
	}
}
