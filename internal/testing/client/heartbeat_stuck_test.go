package client

import (
	"maps"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	repeat "heartbeat/internal/testing/long"
	"heartbeat/internal/testing/model"
	"heartbeat/internal/testing/stuck"
)

// ofClient are the states in which nothing moves that depend on the client, by wiring.
var ofClient = []struct {
	name string
	in   map[string]stuck.Seen
	// bring brings it about, and end ends it.
	bring, end func(*stuckRig)
}{
	{
		"the model hangs", both(stuck.Seen{Kind: "stalled", State: "stalled", Says: "nothing has moved for 1h.*waiting for an answer to the entry"}),
		func(s *stuckRig) {
			s.meets(model.Hang())
			s.until(s.ctx, "the transcript has the entry", func() bool { return s.transcribed("[e1]") })
			transcripts, err := filepath.Glob(filepath.Join(s.Home, ".claude", "projects", "*", "*.jsonl"))
			require.NoError(s.t, err)
			require.NoError(s.t, stuck.Shift(-time.Hour, s.inbox))
			s.aged = transcripts
		},
		(*stuckRig).again,
	},
	{
		"permission", both(stuck.Seen{Kind: "question", State: "waiting for a person", Says: "waits for a person: permission_prompt: .*needs your permission"}),
		func(s *stuckRig) {
			s.meets(model.Tool("Bash", map[string]any{"command": "touch here && rm there", "description": "change files"}), "--ask-patience", "1h")
		},
		func(s *stuckRig) {
			if s.wiring == byHook {
				require.NoError(s.t, s.attended.Enter()) // which is yes
				s.answered(s.ctx, 1)
				return
			}
			s.ends()
		},
	},
	{
		"question", both(stuck.Seen{Kind: "question", State: "waiting for a person", Says: "waits for a person: "}),
		func(s *stuckRig) { s.meets(model.Tool("AskUserQuestion", questions("Way")), "--ask-patience", "1h") },
		func(s *stuckRig) {
			if s.wiring == byHook {
				require.NoError(s.t, s.attended.Enter()) // the first answer
				s.answered(s.ctx, 1)
				return
			}
			s.ends()
		},
	},
	{
		"hooks off", map[string]stuck.Seen{
			byHook:     {Kind: "no-session", State: "no session", Says: "no session has ever asked: start one, and see heartbeat doctor"},
			byLauncher: {Kind: "no-session", State: "no session", Says: "gave up at .*disableAllHooks"},
		},
		func(s *stuckRig) {
			s.WriteProjectSettings(map[string]any{"disableAllHooks": true})
			s.add(some(1)...)
			s.begins()
			if s.wiring == byLauncher {
				s.managed.started.wait()
				return
			}
			_, err := s.attended.WaitScreen(s.ctx, 0, "ready")
			require.NoError(s.t, err)
		},
		func(s *stuckRig) {
			s.WriteProjectSettings(map[string]any{})
			if s.wiring == byHook {
				s.ends()
			}
			s.begins()
			s.answered(s.ctx, 1)
		},
	},
	{
		"client gone", map[string]stuck.Seen{
			byHook:     {Kind: "no-session", State: "no session", Says: "no session runs: start one; the last one, .* ended at"},
			byLauncher: {Kind: "no-session", State: "no session", Says: "gave up at .*there is no such command: .*claude"},
		},
		func(s *stuckRig) {
			if s.wiring == byHook { // of what a person starts, the inbox knows what has run
				s.begins()
				s.until(s.ctx, "the stop is approved", s.approved)
				s.ends()
			}
			s.away()
			s.add(some(1)...)
			if s.wiring == byLauncher {
				s.begins()
				s.managed.started.wait()
			}
		},
		func(s *stuckRig) {
			s.comes()
			s.begins()
			s.answered(s.ctx, 1)
		},
	},
	{
		"client updated", map[string]stuck.Seen{
			byHook:     {Kind: "orphaned", State: "orphaned", Says: "was in flight when session .* died"},
			byLauncher: {Kind: "launcher-waits", State: "launching", Says: "sees to the next session: .*trouble: there is no such command: .*claude"},
		},
		func(s *stuckRig) {
			s.meets(model.Hang(), "--mode", "persist")
			s.away()
			s.killClient()
		},
		func(s *stuckRig) {
			s.comes()
			if s.wiring == byHook {
				s.begins()
			}
			s.answered(s.ctx, 1)
		},
	},
	{
		"client killed", map[string]stuck.Seen{
			byHook:     {Kind: "orphaned", State: "orphaned", Says: "was in flight when session .* died"},
			byLauncher: {Kind: "dead-letters", State: "empty", Says: "1 dead letter", Letters: 1},
		},
		func(s *stuckRig) {
			s.meets(model.Hang(), "--on-orphan", "deadletter")
			s.killClient()
		},
		func(s *stuckRig) {
			if s.wiring == byHook {
				s.begins()
				s.answered(s.ctx, 1)
				return
			}
			s.run("", "dead-letter", "purge", "--all", "--yes")
		},
	},
	{
		"login expired", map[string]stuck.Seen{
			byHook:     {Kind: "turn-failed", State: "failed", Says: "its turn ended in an error at .*authentication_failed"},
			byLauncher: {Kind: "paused", State: "paused", Says: "paused since .*authentication_failed.*until heartbeat resume"},
		},
		func(s *stuckRig) { s.meets(model.Error(401, "authentication_error", "OAuth token has expired")) },
		(*stuckRig).again,
	},
	{
		"rate limit", map[string]stuck.Seen{
			byHook:     {Kind: "turn-failed", State: "failed", Says: "its turn ended in an error at .*rate_limit"},
			byLauncher: {Kind: "backing-off", State: "backing off", Says: "backing off until .*rate_limit"},
		},
		func(s *stuckRig) {
			s.meets(model.Error(429, "rate_limit_error", "Number of requests has exceeded your limit, try again in 2 hours"))
		},
		(*stuckRig).again,
	},
	{
		"network gone", map[string]stuck.Seen{
			byHook:     {Kind: "turn-failed", State: "failed", Says: "its turn ended in an error at .*ECONN"},
			byLauncher: {Kind: "failing", State: "backing off", Says: "([3-9]|[1-9][0-9]) sessions in a row ended without an answer, the last one after an error: .*ECONN"},
		},
		func(s *stuckRig) {
			s.meets(model.Hang(), "--max-restarts", "50")
			s.network.gone()
		},
		func(s *stuckRig) {
			s.network.back()
			if s.wiring == byHook {
				s.again()
				return
			}
			s.answered(s.ctx, 1)
		},
	},
}

func both(s stuck.Seen) map[string]stuck.Seen {
	return map[string]stuck.Seen{byHook: s, byLauncher: s}
}

// What keeps the real client from going on is told in the same words in all five places, and
// no longer once it is over.
func TestHeartbeatStuck(t *testing.T) {
	repeat.Only(t, "a stand-in for the client brings the same about")
	for _, c := range ofClient {
		t.Run(c.name, func(t *testing.T) {
			for _, wiring := range slices.Sorted(maps.Keys(c.in)) {
				t.Run(wiring, func(t *testing.T) {
					s := newStuckRig(t, wiring)
					want := c.in[wiring]
					c.bring(s)
					until(s.ctx, t, want.Kind+" is told", func() bool {
						s.ages()
						s.lacks = s.look().Missing(want)
						return s.lacks == ""
					}, s.seen)
					t.Log(s.status().Why)
					c.end(s)
					until(s.ctx, t, want.Kind+" is over", func() bool { return s.look().Over(want) }, s.seen)
				})
			}
		})
	}
}
