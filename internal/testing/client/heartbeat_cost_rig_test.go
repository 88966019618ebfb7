package client

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/money/price"
	"heartbeat/internal/testing/model"
)

// spender is a rig whose model says what its answers cost, and keeps that.
type spender struct {
	*rig

	mu    sync.Mutex
	bills map[int]bill // by the number of the request
}

// bill is what an answer cost, and the tag that it was about, empty for a summary.
type bill struct {
	tag, model string
	price.Amount
}

// rates are the client's own, in billionths of a dollar for a token: of input, of output, read
// from the cache, and written to it for five minutes and for an hour.
var rates = map[string][5]int{
	"claude-opus-5-5":  {4000, 20_000, 200, 5000, 8000},
	"claude-opus-4-8":  {5000, 25_000, 500, 6250, 10_000},
	"claude-haiku-5-5": {100, 500, 10, 125, 200},
}

// costs is what the client makes of a usage. A model that it does not know has no price.
func costs(name string, u model.Usage) price.Amount {
	a := price.Amount{
		Requests: 1,
		Tokens:   price.Tokens{Input: int64(u.Input), Output: int64(u.Output), CacheRead: int64(u.CacheRead), CacheWrite: int64(u.CacheWrite)},
	}
	r, known := rates[name]
	if !known {
		a.Unpriced = 1
		return a
	}
	nanos := u.Input*r[0] + u.Output*r[1] + u.CacheRead*r[2] + (u.CacheWrite-u.CacheWrite1h)*r[3] + u.CacheWrite1h*r[4]
	if u.Speed == "fast" {
		nanos *= 2
	}
	a.Nanos, a.Dollars = int64(nanos+u.WebSearches*10_000_000), true
	return a
}

// distinct is what a request takes, another for each.
func distinct(nth int) model.Usage {
	return model.Usage{Input: 1000 + 10*nth, Output: 100 + nth, CacheRead: 2000 + 100*nth, CacheWrite: 300 + 3*nth}
}

// newSpender has an inbox, and a model whose answers cost something else each time unless
// they say it. Tags [sN] are of subagents that work for [eN].
func newSpender(t *testing.T, how answers) *spender {
	t.Helper()
	s := &spender{bills: map[int]bill{}}
	asked := map[string]int{}
	s.rig = newRigWith(t, func(r model.Request) model.Reply {
		tag := asksAbout(r)
		s.mu.Lock()
		defer s.mu.Unlock()
		asked[tag]++
		reply := how(tag, asked[tag])
		if reply.Err != nil || reply.Hang {
			return reply
		}
		if reply.Usage == nil {
			reply = reply.Using(distinct(r.Number))
		}
		of := cmp.Or(reply.Model, r.Model)
		s.bills[r.Number] = bill{strings.Replace(tag, "[s", "[e", 1), of, costs(of, *reply.Usage)}
		return reply
	})
	return s
}

// ownSettings are the project's settings that are not shared.
func (s *spender) ownSettings() string {
	return filepath.Join(s.Project, ".claude", "settings.local.json")
}

// asksAbout is the last tag that a person or a hook said, which may be before the results of
// tools and the reports of subagents; "" for a summary of the conversation.
func asksAbout(r model.Request) string {
	if tag := lastTag(r); tag != "" || strings.Contains(r.UserText, "a detailed summary of the conversation") {
		return tag
	}
	var body struct {
		Messages []struct {
			Role    string
			Content json.RawMessage
		}
	}
	_ = json.Unmarshal(r.Body, &body) // the model took it
	tag := ""
	for _, m := range body.Messages {
		if all := tags.FindAll(m.Content, -1); m.Role == "user" && len(all) > 0 {
			tag = string(all[len(all)-1])
		}
	}
	return tag
}

var answerID = regexp.MustCompile(`"id":"msg_standin_(\d+)"`)

// written are the numbers of the requests whose answers are in a transcript. The client writes
// them late, and not at all where it is ended right behind one.
func (s *spender) written() map[int]bool {
	s.t.Helper()
	all := map[int]bool{}
	for _, pattern := range []string{"*.jsonl", "*/subagents/*.jsonl"} {
		paths, err := filepath.Glob(filepath.Join(s.Home, ".claude", "projects", "*", pattern))
		require.NoError(s.t, err)
		for _, path := range paths {
			text, err := os.ReadFile(path)
			require.NoError(s.t, err)
			for _, m := range answerID.FindAllSubmatch(text, -1) {
				n, err := strconv.Atoi(string(m[1]))
				require.NoError(s.t, err)
				all[n] = true
			}
		}
	}
	return all
}

var conversation = regexp.MustCompile(`"preTokens":(\d+)`)

// conversations are how many tokens the conversations had that were made a summary of, as the
// transcripts say.
func (s *spender) conversations() (all []int) {
	s.t.Helper()
	paths, err := filepath.Glob(filepath.Join(s.Home, ".claude", "projects", "*", "*.jsonl"))
	require.NoError(s.t, err)
	for _, path := range paths {
		text, err := os.ReadFile(path)
		require.NoError(s.t, err)
		for _, m := range conversation.FindAllSubmatch(text, -1) {
			n, err := strconv.Atoi(string(m[1]))
			require.NoError(s.t, err)
			all = append(all, n)
		}
	}
	return all
}

// billed is what the model said of a tag, of all for an empty one: what is in the transcripts,
// and the tags of the answers that are not. A summary is in none: it is guessed to have read its
// conversation.
func (s *spender) billed(tag string) (sum price.Amount, lost []string) {
	s.t.Helper()
	written, summarised := s.written(), s.conversations()
	s.mu.Lock()
	defer s.mu.Unlock()
	for n, b := range s.bills {
		switch {
		case tag != "" && b.tag != tag:
		case written[n]:
			sum = sum.Plus(b.Amount)
		case b.tag == "" && len(summarised) > 0:
			sum = sum.Plus(costs(b.model, model.Usage{CacheRead: summarised[0]}))
			summarised = summarised[1:]
		default:
			lost = append(lost, b.tag)
		}
	}
	return sum, lost
}

// untilWritten waits until every answer is in a transcript.
func (s *spender) untilWritten(ctx context.Context) {
	s.t.Helper()
	s.until(ctx, "the answers are written", func() bool {
		_, lost := s.billed("")
		return len(lost) == 0
	})
}

// exact checks, while no client runs, that all entries have the very price that the model said,
// and that they and what is outside of them add up to all that it said, however it is added up.
func (s *spender) exact() {
	s.t.Helper()
	var want, got []string
	prices := s.priced()
	for _, e := range s.entries {
		w, _ := s.billed(e.tag)
		p := prices[e.tag]
		assert.Equal(s.t, w.Tokens, p.Tokens, e.tag)
		want, got = append(want, spelt(e.tag, w)), append(got, spelt(e.tag, p.Amount))
	}
	assert.Equal(s.t, want, got)
	all, lost := s.billed("")
	for _, by := range []string{"entry", "session", "day"} {
		sum, total := s.spent(by)
		if by == "entry" { // the client says it for sessions
			sum.ClientNanos, total.ClientNanos = 0, 0
		}
		assert.Equal(s.t, total, sum, "the sum by %s", by)
		assert.Equal(s.t, spelt("all", all), spelt("all", total), "the total by %s", by)
	}
	s.t.Logf("%s; of %d answers these are in no transcript: %q", spelt("all", all), len(s.bills), lost)
	if s.t.Failed() {
		s.t.Log(s.run("", "costs", "--by", "entry"))
	}
}

// spelt leaves out the tokens: those of a summary are guessed.
func spelt(tag string, a price.Amount) string {
	return fmt.Sprintf("%s: %d requests, %d unpriced, %.5f USD", tag, a.Requests, a.Unpriced, a.USD())
}

// priced are the results as the command shows them, by the tags of their entries.
func (s *spender) priced() map[string]price.Price {
	s.t.Helper()
	all := map[string]price.Price{}
	for l := range strings.Lines(s.run("", "results", "-n", "0", "--json")) {
		var of line
		var p price.Price
		require.NoError(s.t, json.Unmarshal([]byte(l), &of))
		require.NoError(s.t, json.Unmarshal([]byte(l), &p))
		all[s.tagOf(of.EntryID)] = p
	}
	return all
}

// spent is the total of costs, and the sum of its other lines.
func (s *spender) spent(by string) (sum, total price.Amount) {
	s.t.Helper()
	for l := range strings.Lines(s.run("", "costs", "--by", by, "--json")) {
		var on struct{ What string }
		var p price.Price
		require.NoError(s.t, json.Unmarshal([]byte(l), &on))
		require.NoError(s.t, json.Unmarshal([]byte(l), &p))
		if on.What == "total" {
			total = p.Amount
		} else {
			sum = sum.Plus(p.Amount)
		}
	}
	return sum, total
}

func quotedForShell(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
