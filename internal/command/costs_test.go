package command

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/inbox"
	"heartbeat/internal/cli"
	"heartbeat/internal/money/account"
	"heartbeat/internal/money/meter"
	"heartbeat/internal/money/price"
)

// spender works through an inbox and spends money on it.
type spender struct {
	*testing.T
	box        *inbox.Inbox
	now        time.Time
	session    string
	transcript string
	models     map[int64]bool // of which the prices are written down
	requests   int
}

func newSpender(t *testing.T, entries ...inbox.Message) *spender {
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	s := &spender{T: t, now: time.Date(2026, 3, 4, 12, 0, 0, 0, time.Local), models: map[int64]bool{}}
	box, err := inbox.Open(filepath.Join(t.TempDir(), "inbox.jsonl"), inbox.Options{Now: func() time.Time { return s.now }})
	require.NoError(t, err)
	s.box = box
	s.begin("s1")
	for _, m := range entries {
		_, err := box.Append(t.Context(), m, 0)
		require.NoError(t, err)
	}
	return s
}

// write adds to a file.
func (s *spender) write(path, format string, args ...any) {
	s.Helper()
	require.NoError(s, os.MkdirAll(filepath.Dir(path), 0o700))
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	require.NoError(s, err)
	_, err = fmt.Fprintf(f, format, args...)
	require.NoError(s, err)
	require.NoError(s, f.Close())
}

// request is one of a session to the model, with its price in cents; 0 is unknown.
func (s *spender) request(cents int64) {
	s.Helper()
	if cents > 0 && !s.models[cents] {
		s.models[cents] = true
		s.write(meter.PricesPath(), "[models.cents-%d]\ninput = %d\noutput = 0\ncache-read = 0\n", cents, 10*cents)
	}
	s.requests++
	s.write(s.transcript, `{"type":"assistant","message":{"id":"m%d","model":"cents-%d","usage":{"input_tokens":1000,"output_tokens":100,"cache_read_input_tokens":10}}}`+"\n", s.requests, cents)
}

// begin starts a session with a prompt.
func (s *spender) begin(session string) {
	s.session, s.transcript = session, filepath.Join(s.TempDir(), session+".jsonl")
	s.feedback()
}

// place says where in its transcript the session is.
func (s *spender) place(tx *inbox.Tx) {
	info, err := os.Stat(s.transcript)
	require.NoError(s, err)
	account.Of(tx).Position(s.session, s.transcript, info.Size(), true)
}

// stop ends a turn: settle deals with the entry in flight, and deliver hands the next one
// over, whose text becomes a line of the transcript.
func (s *spender) stop(settle func(*inbox.Tx) error, deliver bool) {
	s.Helper()
	s.now = s.now.Add(time.Minute)
	s.in(func(tx *inbox.Tx) error {
		s.place(tx)
		if err := meter.ChargeTurn(tx, s.session); err != nil {
			return err
		}
		if tx.InFlight() != nil {
			require.NoError(s, settle(tx))
		}
		if !deliver {
			return nil
		}
		e, err := tx.Next(inbox.Mark{})
		require.NoError(s, err)
		_, err = tx.Deliver(e, inbox.Recipient{SessionID: s.session})
		return err
	})
}

// feedback is the line of the transcript with what the hook, or a person, said.
func (s *spender) feedback() {
	s.Helper()
	s.write(s.transcript, `{"type":"user","message":{"content":"q"}}`+"\n")
}

// end charges what the session spent to its end.
func (s *spender) end() {
	s.Helper()
	s.now = s.now.Add(time.Minute)
	s.in(func(tx *inbox.Tx) error { return meter.NoteCharge(tx, s.session, false) })
}

func (s *spender) in(do func(*inbox.Tx) error) {
	s.Helper()
	tx, err := s.box.Begin(s.Context())
	require.NoError(s, err)
	require.NoError(s, do(tx))
	require.NoError(s, tx.Commit())
	require.NoError(s, tx.Close())
}

func reply(text string) func(*inbox.Tx) error {
	return func(tx *inbox.Tx) error { return tx.Acknowledge(text) }
}

func setAside(tx *inbox.Tx) error { return tx.DeadLetter(inbox.ReasonFailed) }

// says is what a verb prints, which must end well, and its notes.
func says(t *testing.T, box *inbox.Inbox, args ...string) (out, notes string) {
	t.Helper()
	var o, e bytes.Buffer
	verb := 1
	if args[0] == "dead-letter" {
		verb = 2
	}
	full := append(append(append([]string(nil), args[:verb]...), "--inbox", box.Path()), args[verb:]...)
	require.Zero(t, Run(full, cli.Streams{Command: commandName, Out: &o, Err: &e}), "%q: %s", args, &e)
	return o.String(), strings.ReplaceAll(e.String(), box.Dir(), "DIR")
}

// spentOn is an inbox with two answered entries, one that was set aside after two
// attempts in two sessions, and spending outside of entries.
func spentOn(t *testing.T) *spender {
	s := newSpender(t,
		inbox.Message{ID: "job-1", Text: "one", Metadata: map[string]any{"team": "core"}},
		inbox.Message{ID: "=job()", Text: "two", Metadata: map[string]any{"team": map[string]any{"name": "=x"}}},
		inbox.Message{ID: "job-3", Text: "three"})
	s.request(7)
	s.stop(nil, true) // 7 cents outside, then job-1
	s.feedback()
	s.request(100)
	s.request(50)
	s.stop(reply("did one"), true) // =job()
	s.request(25)                  // job-1: said too late
	s.feedback()
	s.request(4)
	s.stop(reply("did two"), true) // job-3
	s.feedback()
	s.request(30)
	s.stop(func(tx *inbox.Tx) error { return tx.GiveBack("", true) }, false)
	s.end()
	s.begin("s2")
	s.now = s.now.Add(24 * time.Hour)
	s.stop(nil, true) // job-3 again
	s.feedback()
	s.request(3)
	s.stop(setAside, false)
	s.feedback()
	s.request(2) // nobody's
	s.end()
	return s
}

func TestCosts(t *testing.T) {
	box := spentOn(t).box
	for by, want := range map[string]string{
		"day": "2026-03-04\t3\t2.16\t0.07\t6\t6000\t600\t60\t0\n" +
			"2026-03-05\t1\t0.05\t0.02\t2\t2000\t200\t20\t0\n" +
			"total\t3\t2.21\t0.09\t8\t8000\t800\t80\t0\n",
		"entry": "job-1\t1\t1.75\t\t3\t3000\t300\t30\t0\n" +
			"=job()\t1\t0.04\t\t1\t1000\t100\t10\t0\n" +
			"job-3\t1\t0.33\t\t2\t2000\t200\t20\t0\n" +
			"outside of entries\t0\t0.09\t0.09\t2\t2000\t200\t20\t0\n" +
			"total\t3\t2.21\t0.09\t8\t8000\t800\t80\t0\n",
		"session": "s1\t3\t2.16\t0.07\t6\t6000\t600\t60\t0\n" +
			"s2\t1\t0.05\t0.02\t2\t2000\t200\t20\t0\n" +
			"total\t3\t2.21\t0.09\t8\t8000\t800\t80\t0\n",
		"meta.team": "core\t1\t1.75\t\t3\t3000\t300\t30\t0\n" +
			"without team\t1\t0.33\t\t2\t2000\t200\t20\t0\n" +
			`{"name":"=x"}` + "\t1\t0.04\t\t1\t1000\t100\t10\t0\n" +
			"outside of entries\t0\t0.09\t0.09\t2\t2000\t200\t20\t0\n" +
			"total\t3\t2.21\t0.09\t8\t8000\t800\t80\t0\n",
	} {
		out, notes := says(t, box, "costs", "--by", by)
		assert.Equal(t, want, out, by)
		assert.Empty(t, notes)
	}
	out, _ := says(t, box, "costs", "--by", "meta.team", "--csv")
	assert.Contains(t, out, "what,name,entry_id,start_offset,entries,cost_usd,")
	assert.Contains(t, out, "\n"+`"meta.team","core",,,1,1.75,`)
	assert.Contains(t, out, "\n"+`"outside",,,,0,0.09,0.09,`)
	assert.NotContains(t, out, "total")
	out, _ = says(t, box, "costs", "--by", "entry", "--csv")
	assert.Contains(t, out, "\n"+`"entry","'=job()",`)
	out, _ = says(t, box, "costs", "--json")
	assert.Equal(t, 3, strings.Count(out, "\n"))
	var total map[string]any
	require.NoError(t, json.Unmarshal([]byte(out[strings.LastIndex(strings.TrimSpace(out), "\n")+1:]), &total))
	assert.Equal(t, map[string]any{
		"by": "day", "what": "total", "entries": 3.0, "cost_usd": 2.21, "outside_usd": 0.09, "requests": 8.0,
		"tokens": map[string]any{"input": 8000.0, "output": 800.0, "cache_read": 80.0, "cache_write": 0.0},
	}, total)
}

// TestCostsSince takes times in every form.
func TestCostsSince(t *testing.T) {
	s := spentOn(t)
	ago := func(d time.Duration) time.Duration { return time.Since(s.now.Add(-d)) }
	for since, cents := range map[string]string{
		"2026-03-04":                 "2.21",
		"2026-03-05":                 "0.05",
		"2026-03-05T00:00":           "0.05",
		"2026-03-05 00:00:00":        "0.05",
		"2026-03-05T00:00:00Z":       "0.05",
		"2000-01-01":                 "2.21",
		"20000d":                     "2.21",
		"300000h":                    "2.21",
		ago(12 * time.Hour).String(): "0.05",
		fmt.Sprint(int(ago(48 * time.Hour).Seconds())): "2.21",
	} {
		out, notes := says(t, s.box, "costs", "--since", since)
		assert.Contains(t, out, "total\t", since)
		assert.Equal(t, cents, strings.Split(out[strings.Index(out, "total"):], "\t")[2], since)
		assert.Empty(t, notes)
	}
	out, notes := says(t, s.box, "costs", "--since", "2026-03-06")
	assert.Empty(t, out)
	assert.Contains(t, notes, "nothing was spent in")
	for _, bad := range []string{"", "yesterday", "-5", "NaN", "2999-01-01", "2026-02-30", "1e400"} {
		var out, notes bytes.Buffer
		assert.Equal(t, 1, Run([]string{"costs", "--inbox", s.box.Path(), "--since", bad}, cli.Streams{Command: commandName, Out: &out, Err: &notes}), bad)
		assert.Empty(t, out.String())
		assert.Contains(t, notes.String(), "see heartbeat costs --help")
	}
}

// What was completed after an outcome was written is shown everywhere.
func TestCompletedPrices(t *testing.T) {
	box := spentOn(t).box
	raw, err := os.ReadFile(box.ResultsPath())
	require.NoError(t, err)
	assert.Contains(t, string(raw), `"cost_usd":1.5,`)
	out, notes := says(t, box, "results")
	assert.Empty(t, notes)
	assert.Regexp(t, `did one\t1\.75\n.*did two\t0\.04\n$`, strings.ReplaceAll(out, "\n", "\n"))
	out, _ = says(t, box, "results", "--json")
	lines := strings.SplitAfter(out, "\n")
	assert.Contains(t, lines[0], `"cost_usd":1.75,"tokens":{"input":3000,`)
	assert.Contains(t, lines[0], `"models":[{"cost_usd":0.25,"tokens":{"input":1000,"output":100,"cache_read":10,"cache_write":0},"requests":1,"model":"cents-25"},{"cost_usd":0.5,`)
	assert.NotContains(t, lines[1], `"models"`, "it had one")
	assert.True(t, strings.HasPrefix(lines[0], string(raw[:strings.Index(string(raw), `"first_seq"`)])), "nothing else has changed")
	one, _ := says(t, box, "results", "job-1", "--json")
	assert.Equal(t, lines[0], one)
	out, _ = says(t, box, "dead-letter", "list")
	assert.Regexp(t, `\t2\tjob-3\tthree\t\t0\.33\n$`, out)
	out, _ = says(t, box, "dead-letter", "list", "--json")
	assert.Contains(t, out, `"cost_usd":0.33,`)
	out, _ = says(t, box, "dead-letter", "show", "job-3")
	assert.Contains(t, out, "0.33 USD, 2 requests, 2.2k tokens (2.0k in, 200 out, 20 from the cache)")
	out, _ = says(t, box, "log")
	assert.Regexp(t, `\tanswered\tjob-1\tattempt 1, [0-9a-z ]+, session s1, 1\.75 USD: did one\n`, out)
	assert.Regexp(t, `\tdead-lettered\tjob-3\tattempt 2, session s2, 0\.33 USD: failed\n`, out)
	out, _ = says(t, box, "log", "job-3", "--json")
	assert.Contains(t, out, `"cost_usd":0.33,`)
	out, _ = says(t, box, "send", "--id", "job-1", "--wait", "--json", "one")
	assert.Contains(t, out, `"cost_usd":1.75,`)
	out, _ = says(t, box, "metrics")
	assert.Contains(t, out, "\nheartbeat_cost_usd_total{inbox=\""+box.Path()+"\"} 2.21\n")
	assert.Contains(t, out, "\nheartbeat_cost_outside_usd_total{inbox=\""+box.Path()+"\"} 0.09\n")
	assert.Contains(t, out, "\nheartbeat_cost_today_usd{inbox=\""+box.Path()+"\"} 0\n")
	assert.Contains(t, out, "\nheartbeat_tokens_total{inbox=\""+box.Path()+"\",kind=\"input\"} 8000\n")
	assert.Contains(t, out, "\nheartbeat_requests_total{inbox=\""+box.Path()+"\"} 8\n")
	out, _ = says(t, box, "status")
	assert.Regexp(t, `(?m)^spent +today 0\.00 USD$`, out)
}

// Where nobody knows the price of a model there are no dollars, and that is said once.
func TestTokensWithoutDollars(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	s := newSpender(t, inbox.Message{ID: "a", Text: "one"}, inbox.Message{ID: "b", Text: "two"})
	s.now = time.Now()
	s.stop(nil, true)
	s.feedback()
	s.request(0)
	s.stop(reply("did one"), true)
	s.feedback()
	s.request(0)
	s.end()
	out, notes := says(t, s.box, "costs", "--by", "entry")
	assert.Equal(t, "a\t1\t-\t\t1\t1000\t100\t10\t0\nb\t1\t-\t\t1\t1000\t100\t10\t0\ntotal\t2\t-\t\t2\t2000\t200\t20\t0\n", out)
	assert.Regexp(t, `^heartbeat: for 2 requests the price of the model is not known, so that only tokens are counted: say it in .*/prices\.toml \(heartbeat costs --prices\)\n$`, notes)
	out, _ = says(t, s.box, "results")
	assert.Contains(t, out, "\tdid one\t1.1k tokens\n")
	out, _ = says(t, s.box, "status")
	assert.Regexp(t, `(?m)^in flight +b, .*, attempt 1, 1\.1k tokens so far$`, out)
	assert.Regexp(t, `(?m)^spent +today 2\.2k tokens$`, out)
	assert.Contains(t, out, "for 2 requests nobody knows the price of the model")
	require.NoError(t, os.MkdirAll(filepath.Dir(meter.PricesPath()), 0o700))
	require.NoError(t, os.WriteFile(meter.PricesPath(), []byte("[models.m]\ninput = x\n"), 0o600))
	_, notes = says(t, s.box, "costs")
	assert.Contains(t, notes, "so that only tokens are counted: read what models cost in "+meter.PricesPath()+", so that the prices that are built in count for the rest: line 2")
	out, _ = says(t, s.box, "status")
	assert.Contains(t, out, "nobody knows the price of the model: read what models cost in")
	out, _ = says(t, s.box, "metrics")
	assert.NotContains(t, out, "heartbeat_cost_")
	assert.Contains(t, out, "heartbeat_requests_total")
}

// Files of releases without prices show nothing, not 0.
func TestWithoutPrices(t *testing.T) {
	s := newSpender(t, inbox.Message{ID: "a", Text: "one"}, inbox.Message{ID: "b", Text: "two"})
	for _, settle := range []func(*inbox.Tx) error{nil, reply("did one"), setAside} {
		s.in(func(tx *inbox.Tx) error {
			if tx.InFlight() != nil {
				require.NoError(t, settle(tx))
			}
			e, err := tx.Next(inbox.Mark{})
			if err != nil || e.EntryID == "" {
				return nil
			}
			_, err = tx.Deliver(e, inbox.Recipient{SessionID: "s"})
			return err
		})
	}
	for _, args := range [][]string{{"results"}, {"results", "--json"}, {"dead-letter", "list"}, {"dead-letter", "list", "--json"}, {"dead-letter", "show", "b"}, {"log"}, {"log", "--json"}, {"status"}, {"status", "--json"}, {"metrics"}, {"metrics", "--json"}} {
		out, notes := says(t, s.box, args...)
		assert.NotEmpty(t, out)
		assert.NotRegexp(t, `cost|spent|USD|tokens|requests`, out, args)
		assert.Empty(t, notes)
	}
	out, notes := says(t, s.box, "costs")
	assert.Empty(t, out)
	assert.Equal(t, "heartbeat: nothing was spent in DIR/inbox.jsonl\n", notes)
	out, _ = says(t, s.box, "costs", "--json")
	assert.Empty(t, out)
	out, _ = says(t, s.box, "costs", "--csv")
	assert.Equal(t, 1, strings.Count(out, "\n"))
}

// What others put into the file of costs is named and left out.
func TestForgedCosts(t *testing.T) {
	s := spentOn(t)
	b, err := os.ReadFile(s.box.CostsPath())
	require.NoError(t, err)
	at := bytes.IndexByte(b, '\n') + 1
	forged := append(append(append([]byte(nil), b[:at]...), "noise\n{\"at\":\"2026-03-04T12:00:00Z\",\"cost_usd\":-5}\n\n"...), b[at:]...)
	require.NoError(t, os.WriteFile(s.box.CostsPath(), append(forged, `{"at":"2026-03-04T12:00:00Z","cost_usd":1000`...), 0o600))
	out, notes := says(t, s.box, "costs")
	assert.Contains(t, notes, "are not costs on one line, and are left out")
	assert.NotContains(t, out, "1000.00")
	// Without the file the sums that the journal keeps are still there.
	require.NoError(t, os.Remove(s.box.CostsPath()))
	out, notes = says(t, s.box, "costs")
	assert.Empty(t, out)
	assert.Contains(t, notes, "2.21 USD more was spent earlier: its lines are no longer in DIR/.costs.jsonl")
	out, _ = says(t, s.box, "results")
	assert.Contains(t, out, "did one\t1.50\n", "what the result says")
}

// TestToday has today's sum in words, with the limits of a day.
func TestToday(t *testing.T) {
	nanos := price.Nanos(50_000_000_000)
	usd := price.Price{Amount: price.Amount{Nanos: 3_100_000_000, Dollars: true, Tokens: price.Tokens{Input: 41_200}, Requests: 2}}.Cost()
	tokens := price.Price{Amount: price.Amount{Tokens: price.Tokens{Input: 41_200}, Requests: 2}}.Cost()
	for want, today := range map[string]spentToday{
		"3.10 USD":                       {Cost: usd},
		"3.10 of 50.00 USD":              {Cost: usd, LimitUSD: &nanos},
		"3.10 USD, 41.2k of 1.5M tokens": {Cost: usd, LimitTokens: 1_500_000},
		"41.2k tokens":                   {Cost: tokens},
		"an unknown part of 50.00 USD, 41.2k tokens": {Cost: tokens, LimitUSD: &nanos},
		"nothing of 50.00 USD":                       {LimitUSD: &nanos},
		"0 of 1.5M tokens":                           {LimitTokens: 1_500_000},
	} {
		assert.Equal(t, want, today.String())
	}
	s := newSpender(t, inbox.Message{ID: "a", Text: "one"})
	s.now = time.Now()
	s.in(func(tx *inbox.Tx) error {
		account.Of(tx).NoteLimit(price.Limits{Nanos: int64(nanos), Tokens: 4000}.JSON())
		_, err := tx.Holds().Pause("", nil)
		return err
	})
	s.request(310)
	s.stop(nil, false)
	s.end()
	out, _ := says(t, s.box, "status")
	assert.Regexp(t, `(?m)^spent +today 3\.10 of 50\.00 USD, 1\.1k of 4\.0k tokens$`, out)
	out, _ = says(t, s.box, "status", "--json")
	assert.Contains(t, out, `"cost_usd":3.1,`)
	assert.Contains(t, out, `"limit_usd":50,"limit_tokens":4000}`)
	s.in(func(tx *inbox.Tx) error {
		account.Of(tx).NoteLimit(price.Limits{}.JSON())
		return tx.Holds().Resume()
	})
	out, _ = says(t, s.box, "status")
	assert.Regexp(t, `(?m)^spent +today 3\.10 USD$`, out)
}
