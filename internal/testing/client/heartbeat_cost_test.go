package client

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/hosting/folder"
	"heartbeat/internal/money/price"
	"heartbeat/internal/testing/model"
)

// nothing is a tool that does nothing.
var nothing = model.Tool("Bash", map[string]any{"command": "true", "description": "nothing"})

// theSummary is of a conversation. Without the tag the client would ask again.
var theSummary = model.Text("<summary>all of it</summary>")

// kinds is a model that answers its first entries in all the ways that have prices of their
// own, and one that has none.
func kinds(tag string, nth int) model.Reply {
	reply := own(tag, nth)
	switch {
	case tag == "[e2]":
		return reply.Using(model.Usage{Input: 3, Output: 700, CacheRead: 20_000, CacheWrite: 30_000})
	case tag == "[e3]":
		return reply.Using(model.Usage{Input: 3, Output: 700, CacheWrite: 30_000, CacheWrite1h: 20_000})
	case tag == "[e4]":
		return reply.Using(model.Usage{Input: 3000, Output: 700, WebSearches: 3})
	case tag == "[e5]":
		return reply.Using(model.Usage{Input: 3000, Output: 700, CacheRead: 500, CacheWrite: 600, Speed: "fast"})
	case tag == "[e6]" && nth == 1:
		return agents(1, map[string]any{"prompt": "help with it [s6]", "model": "haiku"})
	case tag == "[e7]":
		return reply.By("claude-opus-4-8")
	case tag == "[e8]":
		return reply.By("somebody-elses-1")
	case tag == "[e9]" && nth == 1:
		return agents(10, map[string]any{"prompt": "help with it [s9]"})
	case tag == "[s9]" && nth <= 10, tag == "[e10]" && nth <= 3:
		return nothing
	case strings.HasPrefix(tag, "[s"):
		return model.Text("helped")
	case tag == "":
		return theSummary
	}
	return reply
}

// agents asks for that many subagents at once.
func agents(n int, input map[string]any) (reply model.Reply) {
	input["description"], input["subagent_type"] = "help", "general-purpose"
	for range n {
		reply = reply.And(model.Tool("Agent", input))
	}
	return reply
}

// Entries of all kinds, and a chain of short turns, at a tenth of a second each. However
// the client is wired, each has the price that the model said.
func TestHeartbeatCost(t *testing.T) {
	tools := func(s *spender) Options { return s.withTools() }
	drained := func(ctx context.Context, s *spender) {
		s.until(ctx, "the stop is approved", s.approved)
		s.untilWritten(ctx)
	}
	for name, run := range map[string]func(ctx context.Context, s *spender){
		"launcher": func(ctx context.Context, s *spender) {
			s.managingClient(ctx, anyCommand).wait()
		},
		"launcher, in print mode": func(ctx context.Context, s *spender) {
			s.managingClient(ctx, append([]string{"-p"}, anyCommand...)).wait()
		},
		"print mode, resumed": func(ctx context.Context, s *spender) {
			s.install().drain(ctx, prompt(1), tools(s))
			s.add(verbatim(21), verbatim(22))
			o := tools(s)
			o.Resume = s.results()[0].SessionID
			s.drain(ctx, prompt(2), o)
		},
		"installed in the project": func(ctx context.Context, s *spender) {
			s.installIn(s.ownSettings(), "--signal-file", s.signal)
			term := s.attended(ctx, Options{Args: anyCommand})
			drained(ctx, s)
			s.quit(ctx, term)
		},
		"compacted and resumed": func(ctx context.Context, s *spender) {
			s.install().Record("SessionStart")
			term := s.attended(ctx, tools(s))
			drained(ctx, s)
			require.NoError(s.t, term.Submit(ctx, "/compact"))
			_, err := s.WaitEvent(ctx, "SessionStart", 2)
			require.NoError(s.t, err)
			s.add(verbatim(21), verbatim(22))
			s.forgetSignal()
			require.NoError(s.t, term.Submit(ctx, prompt(2)))
			drained(ctx, s)
			s.quit(ctx, term)
			s.add(verbatim(23), verbatim(24))
			s.forgetSignal()
			o := tools(s)
			o.Resume = s.results()[0].SessionID
			term = s.attended(ctx, o)
			drained(ctx, s)
			s.quit(ctx, term)
		},
		"killed twice": func(ctx context.Context, s *spender) {
			s.add(verbatim(21), verbatim(22), verbatim(23), verbatim(24))
			m := s.managingClient(ctx, anyCommand, "--on-orphan", "retry", "--resume")
			for _, tag := range []string{"[e21]", "[e23]"} {
				s.until(ctx, "it is asked", func() bool { return s.hangs(tag) })
				s.killClient()
			}
			w, _ := m.wait()
			assert.Equal(s.t, 2, w.Restarts)
		},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := minutes(t)
			s := newSpender(t, func(tag string, nth int) model.Reply {
				reply := kinds(tag, nth)
				switch {
				case name == "killed twice" && (tag == "[e21]" || tag == "[e23]") && nth <= 2:
					if reply = model.Hang(); nth == 1 {
						reply = nothing
					}
				}
				return reply
			})
			s.add(some(20)...)
			run(ctx, s)
			s.sessionsGone(ctx)
			assert.Len(t, s.results(), len(s.entries))
			s.exact()
			if name == "launcher" { // a subagent of e6 asked another model
				out := s.run("", "results", "-n", "0", "--json")
				assert.Regexp(s.t, `"models":\[.*"model":"claude-haiku[^"]*"`, out)
			}
		})
	}
}

// hangs reports whether the model was asked about a tag again, behind a tool.
func (s *spender) hangs(tag string) bool {
	all := s.Model.MainRequests()
	return len(all) > 0 && asksAbout(all[len(all)-1]) == tag && len(all[len(all)-1].ToolResults) > 0
}

// A person's client goes on with the session while an entry's tool runs, and each writes to the transcript between the
// other's requests. It asks a subagent too, and another session begins once it has ended. The entry has the price of its own.
func TestHeartbeatCostBesideASecondClient(t *testing.T) {
	const wait = "; until [ -e %s ]; do sleep 0.05; done"
	s := newSpender(t, func(tag string, nth int) model.Reply {
		switch {
		case tag == "[e1]" && nth == 1:
			return model.Tool("Bash", map[string]any{"command": "touch begun" + fmt.Sprintf(wait, "asked"), "description": "wait"})
		case tag == "[e1]" && nth == 2:
			return model.Tool("Bash", map[string]any{"command": "touch gone-on" + fmt.Sprintf(wait, "ended"), "description": "wait"})
		case tag == "[p2]" && nth == 1:
			return model.Tool("Bash", map[string]any{"command": "touch asked" + fmt.Sprintf(wait, "gone-on"), "description": "wait"}).
				And(agents(1, map[string]any{"prompt": "help with it [q2]"}))
		}
		return own(tag, nth)
	})
	ctx := minutes(t)
	s.install()
	s.add(verbatim(1))
	m := s.managingClient(ctx, anyCommand)
	s.until(ctx, "the entry's tool runs", func() bool { return s.has("begun") })
	paths, err := filepath.Glob(filepath.Join(s.Home, ".claude", "projects", "*", "*.jsonl"))
	require.NoError(t, err)
	require.Len(t, paths, 1)
	o := s.withTools()
	o.Resume = strings.TrimSuffix(filepath.Base(paths[0]), ".jsonl")
	s.drain(ctx, prompt(2), o)
	s.drain(ctx, prompt(3), s.withTools())
	require.NoError(t, os.WriteFile(filepath.Join(s.Project, "ended"), nil, 0o600))
	m.wait()
	s.sessionsGone(ctx)
	s.exact()
}

// A subagent in the background outlives the entry that asked for it. What it spends then is not the next entry's.
func TestHeartbeatCostOfASubagentThatOutlives(t *testing.T) {
	until := func(file string) model.Reply {
		return model.Tool("Bash", map[string]any{"command": "until [ -e " + file + " ]; do sleep 0.05; done", "description": "wait"})
	}
	s := newSpender(t, func(tag string, nth int) model.Reply {
		switch {
		case tag == "[e1]" && nth == 1:
			return agents(1, map[string]any{"prompt": "help with it [q1]", "run_in_background": true})
		case tag == "[q1]" && nth == 1:
			return until("e2-asked")
		case tag == "[e2]" && nth == 1:
			return until("q1-done")
		}
		return own(tag, nth)
	})
	ctx := minutes(t)
	s.install("--rewake")
	s.Record("SubagentStop")
	term := s.attended(ctx, s.withTools())
	s.send(verbatim(1))
	s.answered(ctx, 1)
	s.send(verbatim(2))
	s.asked(ctx, "[e2]", 1)
	require.NoError(t, os.WriteFile(filepath.Join(s.Project, "e2-asked"), nil, 0o600))
	_, err := s.WaitEvent(ctx, "SubagentStop", 1)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(s.Project, "q1-done"), nil, 0o600))
	s.answered(ctx, 2)
	s.untilWritten(ctx)
	s.quit(ctx, term)
	s.hooksGone(ctx)
	prices := s.priced()
	billed, _ := s.billed("[e2]")
	assert.Equal(t, billed.Tokens, prices["[e2]"].Tokens)
}

// has reports whether the project has a file.
func (s *spender) has(name string) bool {
	_, err := os.Stat(filepath.Join(s.Project, name))
	return err == nil
}

// Sessions that entries wake, and one whose hook waits for them.
func TestHeartbeatCostOfTheWoken(t *testing.T) {
	for name, flags := range map[string][]string{"rewake": {"--rewake"}, "persist": {"--mode", "persist", "--idle-interval", "1h"}} {
		t.Run(name, func(t *testing.T) {
			s := newSpender(t, own)
			s.install(flags...)
			ctx := minutes(t)
			term := s.attended(ctx, s.options(NoRetries))
			for i, e := range some(3) {
				s.send(e)
				s.answered(ctx, i+1)
			}
			s.untilWritten(ctx)
			s.quit(ctx, term)
			s.hooksGone(ctx)
			s.exact()
		})
	}
}

// What a hosted client says in its result line is what its entries cost, and what the guild
// is told.
func TestHeartbeatCostOfTheHosted(t *testing.T) {
	var billed price.Amount
	h := newHosting(t, func(r model.Request) model.Reply {
		usage := distinct(r.Number)
		billed = billed.Plus(costs(r.Model, usage)) // one request at a time
		if r.Number == 1 {
			return nothing.Using(usage)
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
	assert.Equal(t, spelt("", billed), spelt("", of("results").Amount))
	assert.Equal(t, spelt("", billed), spelt("", of("costs").Amount))
	assert.Equal(t, billed.Nanos, of("costs").ClientNanos, "the stand-in's prices are the client's")
	told, err := price.DollarsOf(string(h.report()["costUsd"]))
	require.NoError(t, err)
	assert.Equal(t, billed.Nanos, told)
}
