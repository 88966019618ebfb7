package client

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/price"
	"heartbeat/internal/testing/model"
)

// spender is a rig whose model says what its answers cost. It keeps two records of
// that: what the model said, and what the client made of it.
type spender struct {
	*rig
	told string // what the client told a person's status line
	// paced has the model wait with an answer until the status line was told of the
	// answer before, as a model that takes its time does.
	paced atomic.Bool

	mu    sync.Mutex
	bills map[string]price.Amount // by the tag that was asked about
	usage func(nth int) model.Usage
	last  model.Usage // of the last answer

	states map[string][]int64 // how many totals each transcript had when it was looked at last, and which
	growth map[string]int64   // of the client's totals, by session and process
}

// costs are the client's own: dollars for a million tokens of its default model.
func costs(u model.Usage) price.Amount {
	return price.Amount{
		Nanos:   1000*int64(4*u.Input+20*u.Output+5*u.CacheWrite) + 200*int64(u.CacheRead),
		Dollars: true, Requests: 1,
		Tokens: price.Tokens{Input: int64(u.Input), Output: int64(u.Output), CacheRead: int64(u.CacheRead), CacheWrite: int64(u.CacheWrite)},
	}
}

// distinct is what a request takes, another for each.
func distinct(nth int) model.Usage {
	return model.Usage{Input: 1000 + 10*nth, Output: 100 + nth, CacheRead: 2000 + 100*nth, CacheWrite: 300 + 3*nth}
}

// alike is the same for each request.
func alike(int) model.Usage { return model.Usage{Input: 1000, Output: 100} }

// newSpender has an inbox, and a status line of the person's in the settings of the home.
func newSpender(t *testing.T, usage func(nth int) model.Usage, how answers) *spender {
	t.Helper()
	s := &spender{usage: usage, bills: map[string]price.Amount{}, states: map[string][]int64{}, growth: map[string]int64{}}
	asked := map[string]int{}
	s.rig = newRigWith(t, func(r model.Request) model.Reply {
		tag := asksAbout(r)
		s.mu.Lock()
		asked[tag]++
		nth := asked[tag]
		s.mu.Unlock()
		if !strings.HasPrefix(tag, "[p") { // another session may have had the last answer
			s.pace(t)
		}
		reply := how(tag, nth)
		if reply.Err != nil || reply.Hang {
			return reply
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if reply.Usage == nil {
			reply = reply.Using(s.usage(r.Number))
		}
		s.bills[tag], s.last = s.bills[tag].Plus(costs(*reply.Usage)), *reply.Usage
		if tag == "" {
			s.last = model.Usage{} // a summary, which the client does not tell of
		}
		return reply
	})
	s.told = filepath.Join(filepath.Dir(s.Home), "told")
	s.person(s.watching())
	return s
}

// person has a person's status line in the settings of the project that are not shared, and
// where install writes.
func (s *spender) person(line string) {
	settings := map[string]any{"statusLine": map[string]any{"type": "command", "command": line, "padding": 0}}
	s.writeJSON(s.ownSettings(), settings)
	s.writeJSON(s.settings, settings)
}

// ownSettings are the project's settings that are not shared.
func (s *spender) ownSettings() string {
	return filepath.Join(s.Project, ".claude", "settings.local.json")
}

// asksAbout is the last tag that a person or a hook said, which may be before the
// results of tools.
func asksAbout(r model.Request) string {
	if tag := lastTag(r); tag != "" || len(r.ToolResults) == 0 {
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

// watching is the command of a status line that keeps what the client says, and shows
// that it does.
func (s *spender) watching() string {
	return fmt.Sprintf(`said=$(cat); printf '%%s %%s\n' "$CLAUDE_PID" "$said" >>'%s'; echo "the person's line"`, s.told)
}

// said is one line of what the client told the status line.
type saidTotal struct {
	pid, session, transcript string
	total                    int64
	usage                    model.Usage // of the last request
}

var saidLine = regexp.MustCompile(`^(\d+) (\{.*\})$`)

func (s *spender) saidTotals() (all []saidTotal) {
	s.t.Helper()
	raw, err := os.ReadFile(s.told)
	if os.IsNotExist(err) {
		return nil
	}
	require.NoError(s.t, err)
	for l := range strings.Lines(string(raw)) {
		if !strings.HasSuffix(l, "\n") {
			continue // it is being written
		}
		m := saidLine.FindStringSubmatch(strings.TrimSuffix(l, "\n"))
		if m == nil {
			continue // it was ended amid it
		}
		var said struct {
			Session    string `json:"session_id"`
			Transcript string `json:"transcript_path"`
			Cost       struct {
				Total price.Nanos `json:"total_cost_usd"`
			}
			Window struct {
				Usage struct {
					Input      int `json:"input_tokens"`
					Output     int `json:"output_tokens"`
					CacheRead  int `json:"cache_read_input_tokens"`
					CacheWrite int `json:"cache_creation_input_tokens"`
				} `json:"current_usage"`
			} `json:"context_window"`
		}
		require.NoError(s.t, json.Unmarshal([]byte(m[2]), &said), m[2])
		all = append(all, saidTotal{m[1], said.Session, said.Transcript, int64(said.Cost.Total), model.Usage{Input: said.Window.Usage.Input, Output: said.Window.Usage.Output, CacheRead: said.Window.Usage.CacheRead, CacheWrite: said.Window.Usage.CacheWrite}})
	}
	return all
}

// pace waits until the status line was told of the last answer. What the client never
// tells of, such as what it asked for on its own, is not waited for long.
func (s *spender) pace(t *testing.T) {
	s.mu.Lock()
	last := s.last
	s.mu.Unlock()
	if !s.paced.Load() || last == (model.Usage{}) {
		return
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	tick := time.NewTicker(poll)
	defer tick.Stop()
	for {
		all := s.saidTotals()
		if n := len(all); n > 0 && all[n-1].usage == last {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// note takes down what the client's totals are, while no client runs: by the status
// line, and by what it wrote into the transcripts at its end. A process begins with the
// total that the transcript has, or with nothing. One that was killed said its last
// total to the status line, or none.
func (s *spender) note() {
	s.t.Helper()
	type process struct {
		pid         string
		first, last int64
	}
	latest := map[string]process{}
	for _, said := range s.saidTotals() {
		p := latest[said.session]
		if p.pid != said.pid {
			p = process{pid: said.pid, first: said.total}
		}
		p.last = max(p.last, said.total)
		latest[said.session] = p
	}
	paths, err := filepath.Glob(filepath.Join(s.Home, ".claude", "projects", "*", "*.jsonl"))
	require.NoError(s.t, err)
	for _, path := range paths {
		session := strings.TrimSuffix(filepath.Base(path), ".jsonl")
		p := latest[session] // in print mode there is no status line
		key, before := session+" "+p.pid, int64(0)
		if _, noted := s.growth[key]; noted {
			continue
		}
		if known := s.states[session]; len(known) > 0 {
			before = known[len(known)-1]
		}
		now := statesIn(s.t, path)
		if len(now) > len(s.states[session]) {
			p.last = max(p.last, now[len(now)-1])
		}
		s.states[session] = now
		if p.first < before {
			before = 0
		}
		s.growth[key] = p.last - before
	}
}

// statesIn are the totals that the client wrote into a transcript.
func statesIn(t *testing.T, path string) (all []int64) {
	t.Helper()
	raw, err := os.ReadFile(path)
	require.NoError(t, err)
	for l := range bytes.Lines(raw) {
		var line struct {
			Type  string
			Total price.Nanos `json:"totalCostUSD"`
		}
		if json.Unmarshal(l, &line) == nil && line.Type == "cost-state" {
			all = append(all, int64(line.Total))
		}
	}
	return all
}

// clientsTotal is the sum of the client's totals, as noted.
func (s *spender) clientsTotal() (sum int64) {
	for _, n := range s.growth {
		sum += n
	}
	return sum
}

// billed is what the model said of some tags, of all without any.
func (s *spender) billed(tags ...string) (sum price.Amount) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for tag, a := range s.bills {
		if len(tags) == 0 || slices.Contains(tags, tag) {
			sum = sum.Plus(a)
		}
	}
	return sum
}

// sessions are those that the client told of.
func (s *spender) sessions() (ids []string) {
	for _, said := range s.saidTotals() {
		if !slices.Contains(ids, said.session) {
			ids = append(ids, said.session)
		}
	}
	return ids
}

// untilSaid waits until the client has told the status line of everything so far, and has
// written it: one that is ended at once leaves out its last answer.
func (s *spender) untilSaid(ctx context.Context) {
	s.t.Helper()
	s.mu.Lock()
	last := s.last
	s.mu.Unlock()
	s.until(ctx, fmt.Sprintf("the client says what it cost to use %+v", last), func() bool {
		all := s.saidTotals()
		if last == (model.Usage{}) {
			return true
		}
		return s.transcribed(fmt.Sprintf(`"usage":{"input_tokens":%d,`, last.Input)) && len(all) > 0 && all[len(all)-1].usage == last
	})
}

// works has a launcher work through all entries with one client, which ends once everything
// is said and written.
func (s *spender) works(ctx context.Context, client []string, flags ...string) {
	s.t.Helper()
	m := s.managingClient(ctx, client, append(flags, "--mode", "persist")...)
	s.answered(ctx, len(s.entries))
	s.untilSaid(ctx)
	s.until(ctx, "the last answer is written", func() bool { return s.transcribed(ownReply(s.entries[len(s.entries)-1].tag)) })
	require.NoError(s.t, m.cmd.Process.Signal(syscall.SIGTERM))
	w, _ := m.wait()
	assert.Equal(s.t, 1, w.Sessions)
	s.sessionsGone(ctx)
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

// exact checks that entries have the very price that the model said, and nothing of it
// open or divided.
func (s *spender) exact(all ...entry) { s.t.Helper(); s.costAs(all, false) }

// near checks the same for entries whose dollars were divided where the client said one
// total for several.
func (s *spender) near(all ...entry) { s.t.Helper(); s.costAs(all, true) }

func (s *spender) costAs(all []entry, divided bool) {
	s.t.Helper()
	var want, got []string
	prices, n := s.priced(), 0
	for _, e := range all {
		w, p := s.billed(e.tag), prices[e.tag]
		if p.Divided && divided {
			n++
			if off := p.Nanos - w.Nanos; max(off, -off) < w.Nanos/5 {
				p.Nanos = w.Nanos
			}
			p.Divided = false
		}
		want, got = append(want, spelt(e.tag, price.Price{Amount: w})), append(got, spelt(e.tag, p))
	}
	assert.Equal(s.t, want, got)
	s.t.Logf("%d of %d prices were divided, with %d readings", n, len(all), len(s.saidTotals()))
}

func spelt(tag string, p price.Price) string {
	return fmt.Sprintf("%s %d requests %d tokens %.6f USD, divided %t, open %t", tag, p.Requests, p.Tokens.Sum(), p.USD(), p.Divided, p.Open)
}

// spentOn is one line of costs.
type spentOn struct {
	What, Day string
	SessionID string `json:"session_id"`
	EntryID   string `json:"entry_id"`
	price     price.Price
	Outside   price.Nanos `json:"outside_usd"`
}

func (s *spender) spent(by string) (all []spentOn) {
	s.t.Helper()
	for l := range strings.Lines(s.run("", "costs", "--by", by, "--json")) {
		var on spentOn
		require.NoError(s.t, json.Unmarshal([]byte(l), &on))
		require.NoError(s.t, json.Unmarshal([]byte(l), &on.price))
		all = append(all, on)
	}
	return all
}

// balances checks, while no client runs, that entries and what is outside of them add up
// to what the client said, to the last digit, however it is added up.
func (s *spender) balances() {
	s.t.Helper()
	s.note()
	for _, by := range []string{"entry", "session", "day"} {
		var sum, total price.Amount
		for _, on := range s.spent(by) {
			if on.What == "total" {
				total = on.price.Amount
			} else {
				sum = sum.Plus(on.price.Amount)
			}
		}
		assert.Equal(s.t, total, sum, "the sum by %s", by)
		assert.Equal(s.t, price.FormatUSD(s.clientsTotal()), price.FormatUSD(total.Nanos), "the total by %s", by)
		assert.Equal(s.t, s.clientsTotal(), total.Nanos, "the total by %s", by)
	}
	if s.t.Failed() {
		s.t.Logf("the client's totals: %v\n%s", s.growth, s.run("", "costs", "--by", "entry"))
	}
}

func quotedForShell(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
