package client

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/hosting/folder"
	"heartbeat/internal/price"
	"heartbeat/internal/testing/model"
)

// A session in the launcher's terminal answers three entries. Each has its price, and
// with what the first prompt took they are the client's total.
func TestHeartbeatCostOfEntries(t *testing.T) {
	all := some(3)
	s := newSpender(t, distinct, own)
	s.add(all...)
	s.paced.Store(true)
	s.works(within(t), nil)
	s.exact(all...)
	s.balances()
	assert.Equal(t, s.billed().Nanos, s.clientsTotal(), "the stand-in's prices are the client's")
}

// A chain of entries is faster than the client tells of totals: what it tells for
// several is divided, and its sum is right.
func TestHeartbeatCostOfAChain(t *testing.T) {
	all := some(30)
	s := newSpender(t, alike, own)
	s.add(all...)
	s.works(minutes(t), nil)
	s.near(all...)
	s.balances()
	assert.Equal(t, s.billed().Nanos, s.clientsTotal())
}

// Sessions that entries wake, and one whose hook waits for them.
func TestHeartbeatCostOfTheWoken(t *testing.T) {
	for name, flags := range map[string][]string{"rewake": {"--rewake"}, "persist": {"--mode", "persist", "--idle-interval", "1h"}} {
		t.Run(name, func(t *testing.T) {
			s := newSpender(t, distinct, own)
			s.paced.Store(true)
			s.install(flags...)
			ctx := minutes(t)
			term := s.attended(ctx, s.options(NoRetries))
			all := some(3)
			for i := range all {
				all[i] = s.send(all[i])
				s.answered(ctx, i+1)
			}
			s.untilSaid(ctx)
			s.quit(ctx, term)
			s.hooksGone(ctx)
			s.exact(all...)
			s.balances()
		})
	}
}

// A hook that was installed for a project, and a person who starts a client there.
func TestHeartbeatCostWhereInstalled(t *testing.T) {
	all := some(3)
	s := newSpender(t, distinct, own)
	s.paced.Store(true)
	s.installIn(s.ownSettings(), "--signal-file", s.signal)
	s.add(all...)
	ctx := within(t)
	term := s.attended(ctx, Options{})
	s.until(ctx, "the stop is approved", s.approved)
	s.untilSaid(ctx)
	s.quit(ctx, term)
	s.exact(all...)
	s.balances()
}

// A client in print mode runs no status line. Its requests are counted, and the total that
// it leaves is divided by tokens.
func TestHeartbeatCostInPrintMode(t *testing.T) {
	for name, run := range map[string]func(*spender){
		"with a hook":     func(s *spender) { s.install().drain(within(t), prompt(1), s.options()) },
		"with a launcher": func(s *spender) { s.managingClient(within(t), []string{"-p"}).wait() },
	} {
		t.Run(name, func(t *testing.T) {
			all := some(5)
			s := newSpender(t, distinct, own)
			s.add(all...)
			run(s)
			assert.Len(t, s.results(), 5)
			s.near(all...)
			s.balances()
		})
	}
}

// What a tool asks for in between belongs to the entry, and what a subagent asks for.
func TestHeartbeatCostOfASubagent(t *testing.T) {
	all := some(4)
	s := newSpender(t, distinct, func(tag string, nth int) model.Reply {
		switch {
		case tag == "[e2]" && nth == 1:
			return model.Tool("Agent", map[string]any{"description": "help", "prompt": "help with it [s1]", "subagent_type": "general-purpose"})
		case tag == "[e1]" && nth < 4, tag == "[s1]" && nth < 3:
			return model.Tool("Bash", map[string]any{"command": "true", "description": "nothing"})
		}
		return own(tag, nth)
	})
	s.add(all...)
	w, _ := s.managingClient(minutes(t), anyCommand).wait()
	assert.Equal(t, worked{Reason: "drained", Answered: 4, Sessions: 1}, w)
	got := s.priced()
	for tag, tags := range map[string][]string{"[e1]": {"[e1]"}, "[e2]": {"[e2]", "[s1]"}, "[e3]": {"[e3]"}} {
		want := s.billed(tags...)
		assert.Equal(t, want.Tokens, got[tag].Tokens, tag)
		assert.Equal(t, want.Requests, got[tag].Requests, tag)
		// How many of a subagent's requests are in a total the client does not say.
		if !got[tag].Divided {
			assert.Equal(t, want.Nanos, got[tag].Nanos, tag)
		}
	}
	s.balances()
}

// What is wrong with a person's status line harms no price.
func TestHeartbeatCostBesideALine(t *testing.T) {
	for name, line := range map[string]string{"one that fails": "; exit 3", "one that hangs": "; exec sleep 600"} {
		t.Run(name, func(t *testing.T) {
			all := some(2)
			s := newSpender(t, distinct, own)
			s.person(s.watching() + line)
			s.paced.Store(true)
			s.add(all...)
			s.works(within(t), nil)
			s.exact(all...)
			s.balances()
		})
	}
}

// What a hosted client says in its result line is what its entries cost, and what the guild
// is told.
func TestHeartbeatCostOfTheHosted(t *testing.T) {
	var billed price.Amount
	h := newHosting(t, func(r model.Request) model.Reply {
		usage := distinct(r.Number)
		billed = billed.Plus(costs(usage)) // one request at a time
		if r.Number == 1 {
			return model.Tool("Bash", map[string]any{"command": "true", "description": "nothing"}).Using(usage)
		}
		return model.Text("done").Using(usage)
	})
	h.guild.Expect("ses-1")
	h.run()
	f, err := folder.At(filepath.Join(h.root, "nexus.db"), "ses-1")
	require.NoError(t, err)
	of := func(verb ...string) (p price.Price) {
		out, err := exec.Command(besideHook(h.host), append(verb, "--json", "--inbox", f.InboxPath())...).Output()
		require.NoError(t, err)
		all := strings.Split(strings.TrimSpace(string(out)), "\n")
		require.NoError(t, json.Unmarshal([]byte(all[len(all)-1]), &p), "%s", out)
		return p
	}
	assert.Equal(t, billed, of("results").Amount)
	assert.Equal(t, billed, of("costs").Amount)
	var told price.Nanos
	require.NoError(t, json.Unmarshal(h.report()["costUsd"], &told))
	assert.Equal(t, billed.Nanos, int64(told))
}
